"""`forbear cp`: copy files and objects."""

import os
import sys
from functools import partial
from typing import Unpack

import click

from forbear.cli.kit.completion import complete_path
from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES, BadInput
from forbear.cli.kit.values import file_content
from forbear_transfer.cli.shared.options import OPTIONS, TransferOptions, check, literal_of, make_keywords

_STREAM = "-"
_STDOUT, _STDIN = (
    frozenset({"-", f"/dev/std{name}", f"/dev/fd/{fd}", f"/proc/self/fd/{fd}"}) for name, fd in (("out", 1), ("in", 0))
)
"""The names of the two streams. Once one is closed, the next file that is opened gets its number."""
_MOST_LINKS = 40  # as in Linux
_MOST_LISTED = 256 * 1024 * 1024  # bytes of `--files-from`
_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear cp report.csv gs://my-bucket/
  forbear cp -r photos gs://my-bucket/backup/
  forbear cp 'gs://my-bucket/logs/*.gz' .
  pg_dump mydb | forbear cp - gs://my-bucket/mydb.sql
  forbear cp -r --embedded --faults 1 photos gs://demo/"""


@click.command(cls=GroupedCommand, params=[*OPTIONS], epilog=_EPILOG)
@click.argument("sources", nargs=-1, metavar="SOURCE...", shell_complete=complete_path)
@click.argument("target", shell_complete=complete_path)
@click.option("-r", "--recursive", is_flag=True, help="Copy folders with everything in them.")
@click.option("-n", "--no-clobber", is_flag=True, help="Skip files that exist at TARGET.")
@click.option(
    "--if-generation-match",
    "generation",
    type=click.IntRange(0),
    metavar="N",
    help="Replace only this version of TARGET; 0 for none.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be copied, and change nothing.")
@click.option(
    "--files-from",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Also copy the sources in FILE, one on each line; - for stdin.",
)
@click.pass_context
def command(
    ctx: click.Context,
    sources: tuple[str, ...],
    target: str,
    recursive: bool,
    no_clobber: bool,
    generation: int | None,
    dry_run: bool,
    files_from: tuple[str, ...],
    **options: Unpack[TransferOptions],
) -> None:
    """Copy files to and from Cloud Storage; interrupted copies resume.

    SOURCE and TARGET are files, folders, gs:// addresses, or - for stdin and stdout. With several sources, TARGET is a
    folder. In gs:// addresses *, ?, [...] and ** are wildcards.

    After a failure, a copy continues from the last byte that arrived. The same command, run again, continues it too.
    The CRC32C of every file is verified. The backoff options limit the retries of one transfer; any progress resets
    them.
    """
    check(options, dry_run=dry_run)
    sources = (*sources, *(source for file in files_from for source in _read_list(file)))
    if not sources:
        raise click.MissingParameter(ctx=ctx, param=next(each for each in ctx.command.params if each.name == "sources"))
    if _is_among(target, _STDOUT) and sys.__stdout__ is None:
        raise BadInput(f"`{target}` as the target needs stdout, which is closed", "redirect it: > FILE")
    source = next((each for each in sources if _is_among(each, _STDIN)), None)
    if source is not None and sys.__stdin__ is None:
        raise BadInput(f"`{source}` as the source needs stdin, which is closed", "redirect it: < FILE")
    if _STREAM in (*sources, target):
        _check_stream(sources, target, recursive, options)
    from forbear_transfer.cli.shared.problems import check_names
    from forbear_transfer.cli.shared.run import run_transfers  # needs httptools
    from forbear_transfer.functions import prepare_cp

    prepare = partial(
        prepare_cp,
        sources,
        target,
        recursive=recursive,
        no_clobber=no_clobber,
        generation=generation,
        literal=literal_of(options),
        dry_run=dry_run,
        **make_keywords(options),
    )
    check_sources = partial(check_names, sources, streams=True, literal=literal_of(options))
    run_transfers(ctx, options, (*sources, target), prepare, check=check_sources, dry_run=dry_run)


def _read_list(file: str) -> tuple[str, ...]:
    """Return the lines of a file, or of stdin for "-", without empty ones; raise BadInput if it cannot be read."""
    hint = "copy the files in several runs, or by a pattern"
    text = file_content(file, _MOST_LISTED, hint, failure="`--files-from` cannot read")
    lines = tuple(os.fsdecode(line.removesuffix(b"\r")) for line in text.split(b"\n") if line.strip())
    if not lines:
        raise BadInput(f"`--files-from` needs at least one source, and {file} has none", "write one on each line")
    return lines


def _is_among(name: str, streams: frozenset[str]) -> bool:
    """Return whether a name is that of one of the streams, also as //dev/stdout or by a symbolic link to it."""
    for _ in range(_MOST_LINKS):
        if (f"/{os.path.normpath(name).lstrip('/')}" if name.startswith("/") else name) in streams:
            return True
        folder, last = os.path.split(name)
        try:
            name = os.path.join(os.path.realpath(folder), os.readlink(name))
        except (OSError, ValueError):
            return os.path.join(os.path.realpath(folder), last) in streams
    return False


def _check_stream(sources: tuple[str, ...], target: str, recursive: bool, options: TransferOptions) -> None:
    if recursive:
        raise BadInput("`-` does not go with `-r`", "a stream is one file, not a folder")
    if len(sources) > 1 and _STREAM in sources:
        raise BadInput("`-` must be the only source", "copy stdin with a separate command")
    if options["manifest"] is not None:
        raise BadInput("`--manifest` does not go with `-`", "a stream differs each time: leave --manifest out")
    if target == _STREAM and options["as_json"]:
        raise BadInput("`--json` does not go with `-` as the target", "both would write to stdout: leave --json out")
