"""`forbear hash`: print the hashes of files and objects."""

import json
from typing import Any

import click

from forbear.cli.kit.completion import complete_path
from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import decryption_keys_of, literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear hash report.csv gs://my-bucket/report.csv
  forbear hash --json 'gs://my-bucket/*.csv'"""


@click.command(cls=GroupedCommand, params=connection_options("literal", "pattern", reads=True), epilog=_EPILOG)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_path)
@click.pass_context
def command(ctx: click.Context, /, names: tuple[str, ...], **options: Any) -> None:
    """Print the CRC32C and MD5 of files and objects, in base64.

    NAME is a file, a gs:// address, or a pattern with *, ?, [...] or **. Files are read; for objects, the service
    states the hashes. A composite object has no MD5. With --json, each line is one JSON object.
    """
    complete = completed(options)
    literal = literal_of(complete)
    keys = decryption_keys_of(complete)
    from forbear_transfer.cli.shared.problems import check_names
    from forbear_transfer.cli.shared.records import hashes_record, show_address
    from forbear_transfer.cli.shared.session import LinePrinter, run_command  # needs httptools
    from forbear_transfer.commands.hashing import ahashes, list_names
    from forbear_transfer.objects import is_cloud
    from forbear_transfer.storage.client import Storage

    if not any(is_cloud(name) for name in names):  # files need no credentials
        complete["anonymous"], complete["credentials"], complete["impersonate"] = True, None, None

    async def work(storage: Storage) -> None:
        show = LinePrinter()
        async for one in ahashes(storage, names, literal=literal, decryption_keys=keys):
            if complete["as_json"]:
                show(json.dumps(hashes_record(one)))
            else:
                show(f"{one.crc32c or 'no crc32c':9}  {one.md5 or 'no md5':24}  {show_address(one.name)}")

    def check() -> None:
        check_names(list_names(names, literal), streams=False, literal=literal)

    run_command(ctx, complete, work, check=check)
