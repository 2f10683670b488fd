"""`forbear cp`: its arguments. How it is carried out is not known here."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Unpack

import click

from forbear.cli.output import EXIT_CODES, BadInput
from forbear.cli.transfers.options import Given, check, transfer_options

if TYPE_CHECKING:
    from forbear.cli.transfers.watch import Watch
    from forbear.transfer.items import Summary
    from forbear.transfer.storage.client import Storage

_STREAM = "-"
_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear cp report.csv gs://my-bucket/
  forbear cp -r photos gs://my-bucket/backup/
  forbear cp 'gs://my-bucket/logs/*.gz' .
  pg_dump mydb | forbear cp - gs://my-bucket/mydb.sql
  forbear cp -r --embedded --storm 1 photos gs://demo/"""


@click.command(epilog=_EPILOG)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("target")
@click.option("-r", "--recursive", is_flag=True, help="Copy folders with all that is in them.")
@click.option("-n", "--no-clobber", is_flag=True, help="Leave alone what is there already.")
@transfer_options
@click.pass_context
def command(
    ctx: click.Context,
    sources: tuple[str, ...],
    target: str,
    recursive: bool,
    no_clobber: bool,
    **given: Unpack[Given],
) -> None:
    """Copy files to and from Cloud Storage, come what may.

    SOURCE and TARGET are files, folders, gs:// addresses, or - for stdin and stdout. With several sources, TARGET is a
    folder. In gs:// addresses *, ?, [...] and ** are wildcards.

    After a failure it continues from the last byte that is there, and so does the same command run again, whatever
    ended the one before. Every file is checked by its CRC32C. Options of the backoff are for one transfer without
    progress: each bit of progress starts its patience anew.
    """
    check(given)
    if _STREAM in (*sources, target):
        _check_stream(sources, target, recursive, given)
    from forbear.cli.transfers.run import run_transfers  # needs httptools
    from forbear.transfer.functions import acp
    from forbear.transfer.plans.arguments import CpArguments

    asked = partial(
        CpArguments.of, sources, target, recursive=recursive, no_clobber=no_clobber, exclude=given["exclude"]
    )

    async def transfer(storage: "Storage", watch: "Watch") -> "Summary":
        return await acp(
            storage,
            sources,
            target,
            recursive=recursive,
            no_clobber=no_clobber,
            exclude=given["exclude"],
            manifest=given["manifest"],
            parallel=given["parallel"],
            listener=watch,
        )

    run_transfers(ctx, given, (*sources, target), asked, transfer)


def _check_stream(sources: tuple[str, ...], target: str, recursive: bool, given: Given) -> None:
    """BadInput for what does not go with stdin and stdout."""
    if recursive:
        raise BadInput("`-` does not go with `-r`", "a stream is one file, not a folder")
    if len(sources) > 1 and _STREAM in sources:
        raise BadInput("`-` must be the only source", "copy stdin by a command of its own")
    if target == _STREAM and sys.__stdout__ is None:
        raise BadInput("`-` as the target needs stdout, which is closed", "let it lead somewhere: > FILE")
    if _STREAM in sources and sys.__stdin__ is None:
        raise BadInput("`-` as the source needs stdin, which is closed", "let it come from somewhere: < FILE")
    if given["manifest"] is not None:
        raise BadInput("`--manifest` does not go with `-`", "a stream is another one each time: leave --manifest out")
    if target == _STREAM and given["as_json"]:
        raise BadInput("`--json` does not go with `-` as the target", "both would write to stdout: leave --json out")
