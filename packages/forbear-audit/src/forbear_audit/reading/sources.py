"""The text of a file: of Python code, or the cells of a notebook. No device, no pipe, and no more than a limit."""

import ast
import codecs
import errno
import json
import re
import stat
import sys
import tokenize
import warnings
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from forbear_audit.findings import Unread
from forbear_audit.reading.patterns import IPYTHON_COMMANDS, OTHER_CELL_MAGIC, PYTHON_CELL_MAGIC

LINE_ENDS = re.compile(r"\r\n|\r|\n")
"""The ends of lines, as Python counts them; str.splitlines() knows more."""

LARGEST = 2_000_000
"""The size in bytes above which a file is not read: its tree may take 500 times as much memory."""

LARGEST_NOTEBOOK = 50_000_000
"""The size in bytes above which a notebook is not read. Most of it are pictures; its code must be below `LARGEST`."""

_QUADRATIC = ("idna", "punycode")
"""The encodings of names in DNS, whose codecs take time that grows with the square of a text."""


def read_regular(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file that has at most `limit`.

    Raises ValueError, with the reason, for a longer file and for one that is not regular, and OSError if it cannot be
    read.
    """
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):  # to open a pipe or a device may never end
        raise ValueError("it is not a regular file")
    if state.st_size > limit:
        raise ValueError(f"{state.st_size / 1e6:.1f} MB are more than the limit of {limit / 1e6:.0f} MB")
    with path.open("rb") as file:
        data = file.read(limit + 1)  # files below /proc have more than they say
    if len(data) > limit:
        raise ValueError(f"it is longer than the limit of {limit / 1e6:.0f} MB")
    return data


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
        return _cells(data) if is_notebook else [(0, _decode(data))]
    except (ValueError, RecursionError) as error:
        return Unread(str(path), str(error) if type(error) is ValueError else "it is no JSON that can be read")


def _reason(path: Path, error: OSError) -> str:
    """Return why a file cannot be opened, in words that fit links, too."""
    if error.errno == errno.ELOOP:
        return "it is a circle of links"
    if error.errno == errno.ENOENT and path.is_symlink():
        return "it is a link to nothing"
    return error.strerror or str(error)


def _decode(data: bytes) -> str:
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
    cells = _read_list(notebook, "cells")
    for sheet in _read_list(notebook, "worksheets") or ():
        cells = [*(cells or ()), *(_read_list(sheet, "cells") or ())]
    if cells is None:
        raise ValueError("it is not a notebook: it has no list of cells")
    sources = [_source(cast("dict[str, Any]", cell)) if isinstance(cell, dict) else "" for cell in cells]
    if sum(map(len, sources)) > LARGEST:  # before they are parsed
        raise ValueError(f"its cells have more code than the limit of {LARGEST / 1e6:.0f} MB")
    texts: list[tuple[int, str]] = []
    for number, source in enumerate(sources, 1):
        text = (
            source
            if not isinstance(parse(source), str)
            else IPYTHON_COMMANDS.sub(r"\1pass  # ", PYTHON_CELL_MAGIC.sub(r"pass  # \g<0>", source))
        )
        if text and not OTHER_CELL_MAGIC.search(source):
            texts.append((number, text))
    return texts


def parse(text: str) -> ast.Module | str:
    """Return the tree of a text, or why it cannot be parsed; what Python warns of in the code is not shown."""
    if "\0" in text:
        return "it has a NUL character"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        reason = (error.msg or "").partition(": value has")[0]  # a number of thousands of digits
        newer = f" for Python {sys.version_info[0]}.{sys.version_info[1]}" if reason == "invalid syntax" else ""
        return f"line {error.lineno}: {reason}{newer}"
    except MemoryError:
        return "its code is nested too deeply"


def read_tree(path: Path) -> ast.Module | None:
    """Return the tree of a Python file, or of the first cell of a notebook; None if it cannot be read."""
    texts = read(path)
    try:
        tree = parse(texts[0][1]) if isinstance(texts, list) else ""
    except (ValueError, RecursionError):
        return None
    return None if isinstance(tree, str) else tree


def _read_list(document: Any, key: str) -> list[Any] | None:
    value: object = cast("dict[str, object]", document).get(key) if isinstance(document, dict) else None
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else None


def _source(cell: dict[str, Any]) -> str:
    """Return the text of a code cell, "" for any other cell."""
    source: object = cell.get("source", cell.get("input")) if cell.get("cell_type") == "code" else ""
    if isinstance(source, list):
        parts = cast("list[object]", source)
        return "".join(part for part in parts if isinstance(part, str))
    return source if isinstance(source, str) else ""
