"""The local paths that commands get, checked before anything is sent."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from forbear.cli.kit.output import BadInput
from forbear_transfer.items import STREAM
from forbear_transfer.objects import is_cloud
from forbear_transfer.plans.wildcards import is_wild


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
