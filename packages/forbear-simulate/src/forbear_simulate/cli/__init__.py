"""`forbear simulate`: what a fleet of clients does to a service, by a policy, in virtual time."""

from pathlib import Path

import click

from forbear.cli.kit.output import BadInput
from forbear_simulate.cli.find import find
from forbear_simulate.cli.gallery import gallery
from forbear_simulate.cli.map import map_triggers
from forbear_simulate.cli.run import run
from forbear_simulate.cli.sweep import sweep
from forbear_simulate.cli.verdict import verdict


class _Commands(click.Group):
    """The group of commands, which says what is meant by a scenario in the place of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            is_file = Path(args[0]).suffix in (".toml", ".json") or Path(args[0]).is_file()
            cure = f"write forbear simulate run {args[0]}" if is_file else f"write one of {', '.join(self.commands)}"
            raise BadInput(f"no such command of `forbear simulate`: {args[0]}", cure)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which a reader needs them


@click.group(
    cls=_Commands,
    epilog="Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted: `run` prints what is known before.",
)
def command() -> None:
    """Show what a fleet of clients does to a service, by a policy, in virtual time.

    A scenario is a file in TOML or JSON (.json): the clients, their policy and budget, the service, and the times in
    which it is slow or out. Without a file, 80 calls per second go to a service for 100 that is out for half a minute.
    docs/simulate.md has all keys with their units.
    """


for each in (run, verdict, find, map_triggers, sweep, gallery):
    command.add_command(each)
