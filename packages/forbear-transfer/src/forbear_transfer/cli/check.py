"""`forbear check`: compare two folders."""

import json
from collections import Counter
from typing import Any

import click

from forbear.cli.kit.completion import complete_path
from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import tell
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import decryption_keys_of

_EPILOG = """Exit codes: 0 the same, 1 different or failed, 2 usage or bad input, 130 interrupted.

\b
Examples:
  forbear check photos gs://my-bucket/photos
  forbear check -x '.*[.]tmp$' gs://my-bucket/photos gs://other-bucket/photos"""


@click.command(cls=GroupedCommand, params=connection_options(reads=True), epilog=_EPILOG)
@click.argument("left", shell_complete=complete_path)
@click.argument("right", shell_complete=complete_path)
@click.option("-x", "--exclude", multiple=True, metavar="REGEX", help="Skip names within the folders that it matches.")
@click.option("--include", multiple=True, metavar="REGEX", help="Skip names that no --include matches.")
@click.pass_context
def command(
    ctx: click.Context, /, left: str, right: str, exclude: tuple[str, ...], include: tuple[str, ...], **options: Any
) -> None:
    """Compare two folders, with all that is below them, by the CRC32C of what they hold.

    LEFT and RIGHT are folders or gs:// addresses; at least one is in the cloud. Files are read, and objects are
    compared as they are stored. stdout has a line for each name in which the folders are not the same. With --json,
    each line is one JSON object, and the last one is a summary.
    """
    complete = completed(options)
    keys = decryption_keys_of(complete)
    from forbear_transfer.cli.shared.problems import check_folders
    from forbear_transfer.cli.shared.records import check_line, check_record
    from forbear_transfer.cli.shared.session import LinePrinter, run_command  # needs httptools
    from forbear_transfer.commands.comparison import CheckStatus, acheck, check_arguments
    from forbear_transfer.storage.client import Storage

    counts = Counter[CheckStatus]()

    async def work(storage: Storage) -> None:
        show = LinePrinter()
        async for one in acheck(storage, left, right, exclude=exclude, include=include, decryption_keys=keys):
            counts[one.status] += 1
            if one.status is CheckStatus.SAME:
                continue
            record = check_record(one)
            show(json.dumps(record) if complete["as_json"] else check_line(one, left, right))

    def check() -> None:
        check_arguments(left, right, exclude, include)
        check_folders([left, right], "`forbear hash` hashes files")

    run_command(ctx, complete, work, check=check)
    if complete["as_json"]:
        click.echo(json.dumps({"summary": {status.value: counts[status] for status in CheckStatus}}))
    if not complete["quiet"]:
        words = {CheckStatus.ONLY_LEFT: f"only in {left}", CheckStatus.ONLY_RIGHT: f"only in {right}"}
        words[CheckStatus.UNREADABLE] = "not compared"
        texts = [
            f"{counts[one]} {words.get(one, one.value)}"
            for one in CheckStatus
            if counts[one] or one is CheckStatus.SAME
        ]
        tell("; ".join(texts))
    ctx.exit(1 if counts.total() > counts[CheckStatus.SAME] else 0)
