"""`forbear stat`: show the metadata of objects."""

import json
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import decryption_keys_of, literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear stat gs://my-bucket/report.csv
  forbear stat --json 'gs://my-bucket/*.csv'"""


@click.command(cls=GroupedCommand, params=connection_options("literal", "pattern", reads=True), epilog=_EPILOG)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.pass_context
def command(ctx: click.Context, /, addresses: tuple[str, ...], **options: Any) -> None:
    """Show the metadata of objects.

    ADDRESS is an object, a version of one (gs://bucket/name#123), or a pattern with *, ?, [...] or **. With --json,
    each object is one line, and null stands for what the service does not state.
    """
    complete = completed(options)
    literal = literal_of(complete)
    keys = decryption_keys_of(complete)
    from forbear_transfer.cli.shared.records import details_lines, details_record
    from forbear_transfer.cli.shared.session import run_command  # needs httptools
    from forbear_transfer.commands.metadata import astat
    from forbear_transfer.commands.selection import check_addresses
    from forbear_transfer.storage.client import Storage

    async def work(storage: Storage) -> None:
        async for details in astat(storage, addresses, literal=literal, decryption_keys=keys):
            if complete["as_json"]:
                click.echo(json.dumps(details_record(details)))
            else:
                click.echo("\n".join(details_lines(details)))

    run_command(ctx, complete, work, check=lambda: check_addresses(addresses, literal=literal))
