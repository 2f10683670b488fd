"""Errors of the command line: those of transfers, with hints that name its options, and those of local paths.

Paths are checked before anything is sent.
"""

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import click

from forbear import report
from forbear.cli.kit.output import BadInput, Problem
from forbear_transfer.cli.shared.reporter import UNREACHABLE, reader_is_gone
from forbear_transfer.errors import NoCredentials, TransferError
from forbear_transfer.items import STREAM
from forbear_transfer.objects import is_cloud
from forbear_transfer.plans.wildcards import is_wild
from forbear_transfer.wire.response import NotConnected

_NO_CREDENTIALS = (
    "log in with `gcloud auth application-default login`, name a key file with --credentials, or go without, for "
    "public data, with --anonymous"
)
_EMBEDDED = "; --embedded needs none"


@contextmanager
def convert_errors() -> Generator[None]:
    """Raise BadInput for a ValueError in the block, and Problem with the right hint for errors of transfers.

    If stdout cannot be written because its reader has closed the pipe, raise BrokenPipeError.
    """
    try:
        yield
    except NoCredentials as error:
        context = click.get_current_context(silent=True)
        embedded = context is not None and "embedded" in context.params
        raise Problem(str(error), f"{_NO_CREDENTIALS}{_EMBEDDED if embedded else ''}") from None
    except NotConnected as error:
        raise Problem(_describe(error), UNREACHABLE if error.hint == NotConnected.hint else error.hint) from None
    except TransferError as error:
        if isinstance(error.__cause__, BrokenPipeError) and reader_is_gone():
            raise error.__cause__ from None
        raise Problem(_describe(error), error.hint) from None
    except ValueError as error:
        rule, _, cure = str(error).partition("; ")
        raise BadInput(rule, cure or None) from None


def _describe(error: Exception) -> str:
    tried = report(error)
    return str(error) if tried is None or tried.count < 2 else f"{error}; {tried.note.partition(': ')[2]}"


def check_names(names: Iterable[str], *, streams: bool, literal: bool | None = None) -> None:
    """Raise BadInput for a local name that does not exist; patterns are not checked.

    With `streams`, "-" is stdin or stdout, and not the name of a file.
    """
    for name in names:
        wild = literal is not True and is_wild(name)
        if not (is_cloud(name) or wild or (streams and name == STREAM) or os.path.lexists(name)):
            raise BadInput(f"{name} does not exist", "check the name")


def check_manifest(file: Path | None) -> None:
    """Raise BadInput if `file`, the value of `--manifest`, lies in no folder, or is nothing."""
    if file == Path():
        raise BadInput("`--manifest` must not be empty", "leave it out, or write a value")
    if file is not None and not file.parent.is_dir():
        raise BadInput(f"cannot write the manifest {file}: there is no folder {file.parent}", "make the folder first")


def check_stdout() -> None:
    """Raise BadInput if stdout, to which a command prints, is closed."""
    if sys.__stdout__ is None:
        raise BadInput("the command needs stdout, which is closed", "redirect it: > FILE")


def check_folders(names: Iterable[str], cure: str) -> None:
    """Raise BadInput for a local name that is no folder; `cure` is the hint if it is a file."""
    for name in names:
        if is_cloud(name) or Path(name).is_dir():
            continue
        if os.path.lexists(name):
            raise BadInput(f"{name} is no folder", cure)
        raise BadInput(f"the folder {name} does not exist", "check the name")
