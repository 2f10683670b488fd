"""`forbear rsync`: its arguments. How it is carried out is not known here."""

from functools import partial
from typing import TYPE_CHECKING, Unpack

import click

from forbear.cli.output import EXIT_CODES, BadInput
from forbear.cli.transfers.options import Given, check, transfer_options

if TYPE_CHECKING:
    from forbear.cli.transfers.watch import Watch
    from forbear.transfer.items import Summary
    from forbear.transfer.storage.client import Storage

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear rsync -r photos gs://my-bucket/photos
  forbear rsync -r -d -n photos gs://my-bucket/photos
  forbear rsync -r -x '.*[.]tmp$' gs://my-bucket/photos photos"""


@click.command(epilog=_EPILOG)
@click.argument("source")
@click.argument("target")
@click.option("-r", "--recursive", is_flag=True, help="Go into folders.")
@click.option("-d", "--delete", is_flag=True, help="Delete what is in TARGET only, once all is copied.")
@click.option("-c", "--checksum", is_flag=True, help="Compare by CRC32C, whatever size and time say.")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@transfer_options
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    target: str,
    recursive: bool,
    delete: bool,
    checksum: bool,
    dry_run: bool,
    **given: Unpack[Given],
) -> None:
    """Make one folder hold what another holds, by copying what differs.

    SOURCE and TARGET are folders, or gs:// addresses as if they were. Files are the same if their sizes are and, where
    both have one, their modification times, else their CRC32C. What `--exclude` matches is neither copied nor deleted.

    Run again after a failure it does the rest, and continues what was under way from the last byte that is there.
    Options of the backoff are for one transfer without progress: each bit of progress starts its patience anew.
    """
    check(given)
    if "-" in (source, target):
        raise BadInput("`-` is no folder", "`forbear cp` copies streams")
    from forbear.cli.transfers.run import run_transfers  # needs httptools
    from forbear.transfer.functions import arsync
    from forbear.transfer.plans.arguments import RsyncArguments

    asked = partial(
        RsyncArguments.of,
        source,
        target,
        recursive=recursive,
        delete=delete,
        checksum=checksum,
        exclude=given["exclude"],
    )

    async def transfer(storage: "Storage", watch: "Watch") -> "Summary":
        return await arsync(
            storage,
            source,
            target,
            recursive=recursive,
            delete=delete,
            checksum=checksum,
            dry_run=dry_run,
            exclude=given["exclude"],
            manifest=given["manifest"],
            parallel=given["parallel"],
            listener=watch,
        )

    run_transfers(ctx, given, (source, target), asked, transfer, dry_run=dry_run)
