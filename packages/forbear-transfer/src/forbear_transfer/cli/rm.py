"""`forbear rm`: delete objects."""

import sys
from functools import partial
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES, BadInput, tell
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear rm gs://my-bucket/report.csv
  forbear rm -r --dry-run gs://my-bucket/old
  forbear rm -r --yes gs://my-bucket/old"""


@click.command(
    cls=GroupedCommand, params=connection_options("literal", "pattern", "parallel", "verbose"), epilog=_EPILOG
)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option("-r", "--recursive", is_flag=True, help="Delete everything below folders.")
@click.option("-a", "--all-versions", is_flag=True, help="Delete all versions of each object, for good.")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question before a pattern or a folder is deleted.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    addresses: tuple[str, ...],
    recursive: bool,
    all_versions: bool,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Delete objects, each in the version that was listed.

    ADDRESS is an object, a pattern with *, ?, [...] or **, or with -r a folder or a bucket, which itself stays. What
    other clients write meanwhile is not deleted. ADDRESS#NUMBER is one version. Before a pattern, a folder or all
    versions are deleted, the command asks; without a terminal it needs --yes.
    """
    complete = completed(options)
    literal = literal_of(complete)
    from forbear_transfer.cli.shared.problems import convert_errors
    from forbear_transfer.cli.shared.reporter import format_bytes, format_count
    from forbear_transfer.cli.shared.run import run_transfers  # needs httptools
    from forbear_transfer.cli.shared.session import run_command
    from forbear_transfer.commands.removal import plan_rm, prepare_rm
    from forbear_transfer.commands.selection import check_addresses
    from forbear_transfer.items import Action, Item
    from forbear_transfer.plans.sources import parse_source
    from forbear_transfer.storage.client import Storage

    items: list[Item] | None = None

    async def list_items(storage: Storage) -> list[Item]:
        planned = plan_rm(storage, addresses, recursive=recursive, literal=literal, all_versions=all_versions)
        return [item async for item in planned]

    with convert_errors():
        check_addresses(addresses, literal=literal)
    asks = recursive or all_versions or any(parse_source(address, literal).wild for address in addresses)
    if asks and not (yes or dry_run):
        items = run_command(ctx, complete, list_items, prints=False)
        objects = [item.object.size for item in items if item.action is Action.DELETE and item.object is not None]
        kind = "version" if all_versions else "object"
        what = f"{format_count(len(objects), kind)}, {format_bytes(sum(objects))}"
        if objects and not is_terminal():
            raise BadInput(f"`--yes` is needed to delete {what} where no terminal can ask", "look first with --dry-run")
        if objects and not _confirm(f"delete {what}?"):
            tell("nothing was deleted")
            ctx.exit(1)
    prepare = partial(
        prepare_rm,
        addresses,
        items,
        recursive=recursive,
        all_versions=all_versions,
        literal=literal,
        dry_run=dry_run,
        parallel=complete["parallel"],
    )
    run_transfers(ctx, complete, addresses, prepare, dry_run=dry_run, deletes=True)


def _confirm(question: str) -> bool:
    """Return the answer to a question on the terminal; raise click.Abort, after a line end, for Ctrl-C and Ctrl-D."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        tell("interrupted: nothing was deleted")
        raise


def is_terminal() -> bool:
    """Return whether stdin and stderr are a terminal, on which a question can be asked and answered."""
    return all(file is not None and file.isatty() for file in (sys.stdin, sys.stderr))
