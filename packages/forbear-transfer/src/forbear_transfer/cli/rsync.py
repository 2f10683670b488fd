"""`forbear rsync`: make a folder hold what another folder holds."""

from functools import partial
from typing import Unpack

import click

from forbear.cli.kit.completion import complete_path
from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES, BadInput
from forbear_transfer.cli.shared.options import NAMES, OPTIONS, TransferOptions, check, make_keywords

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear rsync -r photos gs://my-bucket/photos
  forbear rsync -r -d -n photos gs://my-bucket/photos
  forbear rsync -r -x '.*[.]tmp$' gs://my-bucket/photos photos"""


@click.command(cls=GroupedCommand, params=[option for option in OPTIONS if option not in NAMES], epilog=_EPILOG)
@click.argument("source", shell_complete=complete_path)
@click.argument("target", shell_complete=complete_path)
@click.option("-r", "--recursive", is_flag=True, help="Include subfolders.")
@click.option("-d", "--delete", is_flag=True, help="Delete files that only TARGET has, after all copies.")
@click.option("-c", "--checksum", is_flag=True, help="Compare by CRC32C, not by size and time.")
@click.option("--size-only", is_flag=True, help="Compare by size, and by nothing else.")
@click.option("-u", "--update", is_flag=True, help="Skip files that are newer at TARGET.")
@click.option("--max-delete", type=click.IntRange(0), metavar="N", help="Delete nothing if it would be more than N.")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    target: str,
    recursive: bool,
    delete: bool,
    checksum: bool,
    size_only: bool,
    update: bool,
    max_delete: int | None,
    dry_run: bool,
    **options: Unpack[TransferOptions],
) -> None:
    """Make one folder hold what another holds, by copying the differences.

    SOURCE and TARGET are folders, or gs:// addresses used as folders. Without `--recursive`, subfolders are left out.
    Two files are the same if their sizes and modification times agree; if a time is missing or differs, their CRC32C
    decides. Files that `--exclude` matches are neither copied nor deleted.

    The same command, run again after a failure, does the rest and continues interrupted transfers from the last byte
    that arrived. The backoff options limit the retries of one transfer; any progress resets them.
    """
    check(options, dry_run=dry_run)
    if "-" in (source, target):
        raise BadInput("`-` is no folder", "`forbear cp` copies streams")
    from forbear_transfer.cli.shared.problems import check_folders
    from forbear_transfer.cli.shared.run import run_transfers  # needs httptools
    from forbear_transfer.functions import prepare_rsync

    prepare = partial(
        prepare_rsync,
        source,
        target,
        recursive=recursive,
        delete=delete,
        checksum=checksum,
        size_only=size_only,
        update=update,
        max_delete=max_delete,
        dry_run=dry_run,
        **make_keywords(options),
    )
    check_source = partial(check_folders, [source], "`forbear cp` copies files")
    run_transfers(ctx, options, (source, target), prepare, check=check_source, dry_run=dry_run)
