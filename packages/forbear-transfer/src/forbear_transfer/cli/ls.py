"""`forbear ls`: list objects and folders."""

import json
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES, tell
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear ls gs://my-bucket/
  forbear ls -r -l -h gs://my-bucket/logs
  forbear ls --json 'gs://my-bucket/**.gz'"""


@click.command(
    cls=GroupedCommand,
    params=connection_options("literal", "pattern"),
    epilog=_EPILOG,
    context_settings={"help_option_names": ["--help"]},
)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option("-r", "--recursive", is_flag=True, help="List everything below folders.")
@click.option("-l", "--long", is_flag=True, help="Print sizes and times, too, and a total on stderr.")
@click.option("-h", "--human", is_flag=True, help="With -l: print sizes such as 1.2 GiB.")
@click.option("-a", "--versions", is_flag=True, help="List all versions of objects, with their numbers.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    addresses: tuple[str, ...],
    recursive: bool,
    long: bool,
    human: bool,
    versions: bool,
    **options: Any,
) -> None:
    """List the objects and folders that gs:// addresses name.

    A bucket or folder is listed one level deep; folders end with a slash. *, ?, [...] and ** are wildcards. Lines are
    printed while the pages of a listing arrive; a page that fails is requested again. With --json, each line is one
    JSON object.
    """
    complete = completed(options)
    literal = literal_of(complete)
    from forbear_transfer.cli.shared.records import object_line, object_record
    from forbear_transfer.cli.shared.reporter import format_bytes, format_count
    from forbear_transfer.cli.shared.session import LinePrinter, run_command  # needs httptools
    from forbear_transfer.commands.listing import als
    from forbear_transfer.commands.selection import check_addresses
    from forbear_transfer.objects import Object, Url
    from forbear_transfer.storage.client import Storage

    async def work(storage: Storage) -> tuple[int, int]:
        show = LinePrinter()
        objects = total = 0
        async for entry in als(storage, addresses, recursive=recursive, versions=versions, literal=literal):
            if isinstance(entry, Object):
                objects, total = objects + 1, total + entry.size
            if complete["as_json"]:
                show(json.dumps(object_record(entry)))
            elif long:
                show(object_line(entry, human=human, version=versions))
            elif versions and isinstance(entry, Object):
                show(f"{entry.url}")
            else:
                show(f"{entry if isinstance(entry, Url) else Url(entry.bucket, entry.name)}")
        return objects, total

    objects, total = run_command(ctx, complete, work, check=lambda: check_addresses(addresses, literal=literal))
    if long and not complete["quiet"] and not complete["as_json"]:
        tell(f"{format_count(objects, 'object')}, {format_bytes(total)}")
