"""The group of commands: each is a module, imported only when it is called. It knows their names and nothing else."""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from forbear.cli.output import EXIT_CODES, BadInput, Problem, report

COMMANDS = {
    "run": "Run a program, and again while it fails.",
    "explain": "Say whether a request may be repeated, and why.",
    "schedule": "Show when the retries of a policy would come.",
    "export": "Write a policy in the words of another system.",
    "cp": "Copy files to and from Cloud Storage, come what may.",
    "rsync": "Make one folder hold what another holds, by copying what differs.",
    "cloud": "Serve an embedded Cloud Storage on this machine.",
    "demo": "Show what retries do to data in a storm of faults.",
}
"""A command is its name here, with its summary, and `command` in the module of that name."""

EXTRAS = {
    "google": "transfer",
    "google_crc32c": "cloud",
    "h11": "cloud",
    "httptools": "transfer",
    "httpx": "httpx",
    "matplotlib": "plot",
    "requests": "transfer",
    "rich": "cli",
}
"""Which extra of forbear brings an optional package."""

_EPILOG = f"{EXIT_CODES} `run` passes on those of its program."


class App(click.Group):
    """Reports every error that is no bug in one or two lines, with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order they are introduced."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            raise BadInput(f"no such command: {cmd_name}", f"the commands are {', '.join(COMMANDS)}")
        command: click.Command = importlib.import_module(f"forbear.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and exit; without `standalone_mode`, return or raise as click does."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        if sys.stdout is None:  # closed by the caller, who wants no data
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for the rest of the program
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # as stderr has it: what was typed may be in any encoding
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
            sys.exit(code)
        except click.ClickException as error:
            problem = error if isinstance(error, Problem) else usage_error(error)
            problem.show()
            sys.exit(problem.exit_code)
        except click.Abort:  # Ctrl-C
            sys.exit(130)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            report(f"this needs {package}, which is not installed", f'pip install "forbear[{EXTRAS[package]}]"')
            sys.exit(2)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):  # then our reader has seen enough
                report(": ".join(filter(None, (error.strerror or str(error), error.filename))))
            sys.stdout = None  # or Python would try again, and complain, when it exits
            sys.exit(1)


def usage_error(error: click.ClickException) -> BadInput:
    """What click found wrong, in our words and with a cure."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see `{ctx.command_path} --help`" if ctx is not None else None
    message = error.format_message()
    close = getattr(error, "possibilities", None)
    if close:
        message = error.message
        hint = "did you mean " + " or ".join(f"`{name}`" for name in close) + "?"
    return BadInput(message[:1].lower() + message[1:].rstrip("."), hint)


@click.command(
    cls=App, epilog=_EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="forbear", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Retries that know what is safe to repeat, how long to hold back and when to stop."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
