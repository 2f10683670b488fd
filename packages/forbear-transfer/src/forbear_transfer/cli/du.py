"""`forbear du`: add up what folders hold."""

import json
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear du -h gs://my-bucket
  forbear du -s -h 'gs://my-bucket/logs/*' gs://my-bucket/photos"""


@click.command(
    cls=GroupedCommand,
    params=connection_options("literal", "pattern"),
    epilog=_EPILOG,
    context_settings={"help_option_names": ["--help"]},
)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option("-s", "--summarize", is_flag=True, help="Print only the sum of each ADDRESS.")
@click.option("-h", "--human", is_flag=True, help="Print sizes such as 1.2 GiB.")
@click.pass_context
def command(ctx: click.Context, /, addresses: tuple[str, ...], summarize: bool, human: bool, **options: Any) -> None:
    """Show how many bytes folders hold.

    A line has the bytes of all objects below a folder, as they are stored, and the folder. The sum of each ADDRESS
    comes last. A pattern with *, ?, [...] or ** is one sum. Only live versions count. With --json, each line is one
    JSON object, which has the number of objects, too.
    """
    complete = completed(options)
    literal = literal_of(complete)
    from forbear_transfer.cli.shared.records import show_address, size, usage_record
    from forbear_transfer.cli.shared.session import LinePrinter, run_command  # needs httptools
    from forbear_transfer.commands.listing import adu
    from forbear_transfer.commands.selection import check_addresses
    from forbear_transfer.storage.client import Storage

    async def work(storage: Storage) -> None:
        show = LinePrinter()
        async for usage in adu(storage, addresses, summarize=summarize, literal=literal):
            if complete["as_json"]:
                show(json.dumps(usage_record(usage)))
            else:
                show(f"{size(usage.bytes, human=human):>12}  {show_address(usage.address, addresses)}")

    run_command(ctx, complete, work, check=lambda: check_addresses(addresses, literal=literal))
