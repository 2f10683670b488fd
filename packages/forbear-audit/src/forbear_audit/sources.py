"""The files to read, and their text: Python files and the cells of notebooks."""

import ast
import codecs
import errno
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from forbear_audit.findings import Unread
from forbear_audit.regular import read_regular
from forbear_audit.settings import LARGEST, LARGEST_NOTEBOOK, AuditSettings

_SKIPPED = frozenset({
    "__pycache__", "node_modules", "venv", "site-packages", "build", "dist", "__pypackages__",
})  # fmt: skip
_SUFFIXES = (".py", ".pyw", ".ipynb")
# Of IPython: commands of a line, also as the value of a name; a question about a name.
_MAGIC = re.compile(
    r"^([ \t]*+)(?:[%!?](?!=)(?=\s*+[\w./~(?%!])|[\w., ]++=[ \t]*+[%!](?=\w)|[\w.*]++[ \t]*+\?\??[ \t]*+$)",
    re.MULTILINE,
)
_QUADRATIC = ("idna", "punycode")
"""The encodings of names in DNS, whose codecs take time that grows with the square of a text."""
_CELL_MAGIC = re.compile(r"\A\s*%%(?:time|timeit|capture|prun|debug|python3?)\b.*")
_OTHER_LANGUAGE = re.compile(r"\s*%%(?!(?:time|timeit|capture|prun|debug|python3?)\b)")


def files(paths: Iterable[str | os.PathLike[str]], settings: AuditSettings) -> Iterator[Path | Unread]:
    """Yield the files to read, each once: those named, and the Python files and notebooks below the folders named.

    Hidden folders, environments and build folders below a named folder are left out, and so is what the settings
    exclude, also among the files named. Links to folders are not followed, so a circle of links ends. A named path that
    does not exist is `Unread`.
    """
    seen: set[int] = set()
    for name in paths:
        path = Path(name)
        try:
            candidates: Iterable[Path | Unread] = _below(path, settings) if path.is_dir() else [path]
            if settings.excludes(path) and not path.is_dir():
                candidates = []
            elif not os.path.lexists(path):
                candidates = [Unread(str(path), "there is no such file or folder")]
        except OSError as error:
            candidates = [Unread(str(path), error.strerror or str(error))]
        for file in candidates:
            # A hash for each file, not its name: there may be millions of them.
            key = hash(os.path.realpath(file) if isinstance(file, Path) else file.path)
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
    is_notebook = path.suffix == ".ipynb"
    try:
        data = read_regular(path, LARGEST_NOTEBOOK if is_notebook else LARGEST)
    except OSError as error:
        return Unread(str(path), _reason(path, error))
    except ValueError as error:
        return Unread(str(path), str(error))
    if b"\0" in data:
        return Unread(str(path), "it is binary")
    try:
        return _cells(data) if is_notebook else [(0, _decoded(data))]
    except (ValueError, RecursionError) as error:
        return Unread(str(path), str(error) if type(error) is ValueError else "it is no JSON that can be read")


def _reason(path: Path, error: OSError) -> str:
    """Return why a file cannot be opened, in words that fit links, too."""
    if error.errno == errno.ELOOP:
        return "it is a circle of links"
    if error.errno == errno.ENOENT and path.is_symlink():
        return "it is a link to nothing"
    return error.strerror or str(error)


def _decoded(data: bytes) -> str:
    """Return the text of a Python file; raises ValueError that says why it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        if codecs.lookup(encoding).name in _QUADRATIC:
            raise ValueError(f"its encoding {encoding} takes too long to read")
        return data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        raise ValueError("its text is not in the encoding that it names, or UTF-8") from None


def _cells(data: bytes) -> list[tuple[int, str]]:
    """Return the code cells of a notebook with their numbers; commands that are no Python become comments.

    Notebooks of nbformat 3 have their cells in worksheets. Cells without a text are left out. Raises ValueError for
    JSON that is no notebook, and for too much code.
    """
    try:
        notebook: Any = json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: line {error.lineno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError("it is no JSON: it is not in UTF-8") from None
    except ValueError:
        raise ValueError("it is no JSON: a number has too many digits") from None
    cells = _listed(notebook, "cells")
    for sheet in _listed(notebook, "worksheets") or ():
        cells = [*(cells or ()), *(_listed(sheet, "cells") or ())]
    if cells is None:
        raise ValueError("it is not a notebook: it has no list of cells")
    sources = [_source(cast("dict[str, Any]", cell)) if isinstance(cell, dict) else "" for cell in cells]
    if sum(map(len, sources)) > LARGEST:  # before they are parsed
        raise ValueError(f"its cells have more code than the limit of {LARGEST / 1e6:.0f} MB")
    texts: list[tuple[int, str]] = []
    for number, source in enumerate(sources, 1):
        text = source if _is_python(source) else _MAGIC.sub(r"\1pass  # ", _CELL_MAGIC.sub(r"pass  # \g<0>", source))
        if text and not _OTHER_LANGUAGE.match(source):
            texts.append((number, text))
    return texts


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _listed(document: Any, key: str) -> list[Any] | None:
    value: object = cast("dict[str, object]", document).get(key) if isinstance(document, dict) else None
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else None


def _source(cell: dict[str, Any]) -> str:
    """Return the text of a code cell, "" for any other cell."""
    source: object = cell.get("source", cell.get("input")) if cell.get("cell_type") == "code" else ""
    if isinstance(source, list):
        parts = cast("list[object]", source)
        return "".join(part for part in parts if isinstance(part, str))
    return source if isinstance(source, str) else ""
