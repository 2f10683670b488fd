"""`forbear cat`: write objects to stdout."""

import sys
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import decryption_keys_of, literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear cat gs://my-bucket/report.csv
  forbear cat --range -100 gs://my-bucket/job.log
  forbear cat 'gs://my-bucket/logs/*.log' | grep ERROR"""


@click.command(
    cls=GroupedCommand,
    params=connection_options("literal", "pattern", without=("as_json",), reads=True),
    epilog=_EPILOG,
)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option(
    "-r", "--range", "byte_range", metavar="RANGE", help="Print bytes FIRST-LAST, FIRST- or -COUNT (the last ones)."
)
@click.pass_context
def command(ctx: click.Context, /, addresses: tuple[str, ...], byte_range: str | None, **options: Any) -> None:
    """Write objects to stdout, one after the other.

    After a lost connection, the rest is requested from the same version of the object. Whole objects are verified by
    their CRC32C, and gzip is decoded. With --range, the bytes are those that are stored, counted from 0; LAST is
    included. The first failure ends the command, so that nothing follows a gap.
    """
    complete = completed(options)
    literal = literal_of(complete)
    keys = decryption_keys_of(complete)
    from forbear_transfer.cli.shared.session import run_command  # needs httptools
    from forbear_transfer.commands.reading import acat, cat_addresses
    from forbear_transfer.objects import Object
    from forbear_transfer.storage.client import Storage

    async def work(storage: Storage) -> list[Object]:
        return await acat(
            storage, addresses, sys.stdout.buffer, byte_range=byte_range, literal=literal, decryption_keys=keys
        )

    run_command(ctx, complete, work, check=lambda: cat_addresses(addresses, byte_range, literal))
