"""The files to read, and their text: Python files and the cells of notebooks."""

import json
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from forbear.audit.findings import Unread
from forbear.audit.settings import LARGEST, AuditSettings

_SKIPPED = frozenset({
    "__pycache__", "node_modules", "venv", "site-packages", "build", "dist", "__pypackages__",
})  # fmt: skip
_SUFFIXES = (".py", ".pyw", ".ipynb")
_MAGIC = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\s*\?)", re.MULTILINE)


def files(paths: Iterable[str | os.PathLike[str]], settings: AuditSettings) -> Iterator[Path | Unread]:
    """Yield the files to read, each once: those named, and the Python files and notebooks below the folders named.

    Hidden folders, environments and build folders below a named folder are left out, and so is what the settings
    exclude. Links to folders are not followed, so a circle of links ends. A named path that does not exist is `Unread`.
    """
    seen: set[str] = set()
    for name in paths:
        path = Path(name)
        try:
            candidates: Iterable[Path | Unread] = _below(path, settings) if path.is_dir() else [path]
            if not path.exists():
                candidates = [Unread(str(path), "there is no such file or folder")]
        except OSError as error:
            candidates = [Unread(str(path), error.strerror or str(error))]
        for file in candidates:
            key = os.path.realpath(file) if isinstance(file, Path) else file.path
            if key not in seen:
                seen.add(key)
                yield file


def _below(folder: Path, settings: AuditSettings) -> Iterator[Path | Unread]:
    errors: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=errors.append):
        here = Path(place)
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and f[0] != "." and not settings.excludes(here / f))
        for name in sorted(names):
            file = here / name
            if name.endswith(_SUFFIXES) and not settings.excludes(file):
                yield file
    for error in errors:
        yield Unread(str(error.filename), error.strerror or str(error))


def read(path: Path) -> list[tuple[int, str]] | Unread:
    """Return the texts of a file with the number of the cell, 0 if it is no notebook; Unread if it cannot be read."""
    try:
        if not path.is_file():
            return Unread(str(path), "it is not a regular file")
        size = path.stat().st_size
        if size > LARGEST:
            return Unread(str(path), f"{size / 1e6:.0f} MB are more than the limit of {LARGEST / 1e6:.0f} MB")
        data = path.read_bytes()
        if b"\0" in data:
            return Unread(str(path), "it is binary")
        if path.suffix == ".ipynb":
            return _cells(json.loads(data))
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return [(0, data.decode(encoding))]
    except OSError as error:
        return Unread(str(path), error.strerror or str(error))
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return Unread(str(path), "its text is not in the encoding that it names, or UTF-8")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Unread(str(path), "it is not a valid notebook")


def _cells(notebook: Any) -> list[tuple[int, str]]:
    """Return the code cells of a notebook with their numbers; magic commands become comments."""
    texts: list[tuple[int, str]] = []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("cell_type") == "code":
            source = cell["source"]
            text = source if isinstance(source, str) else "".join(source)
            if not text.startswith("%%"):
                texts.append((number, _MAGIC.sub(r"\1pass  # ", text)))
    return texts
