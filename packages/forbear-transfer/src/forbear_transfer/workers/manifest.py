"""A manifest: a CSV file with a line for each outcome; a rerun of a copy skips the items that it records as done.

The columns are those of gsutil's `-L`, with the checksum as CRC32C, and without the upload ID, which is a secret. A
copy skips the pairs of source and target that the manifest has as OK or skip, even if they have changed since. Each run
appends its own outcomes. A manifest that gsutil wrote can be continued, and keeps its columns.
"""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Self

from forbear.adapters import redact
from forbear_transfer.errors import StrPath, TransferError, unwritable
from forbear_transfer.items import Item, Outcome, Status

COLUMNS = (
    "Source", "Destination", "Start", "End", "Crc32c", "Generation", "Source Size", "Bytes Transferred", "Result",
    "Description",
)  # fmt: skip
_RESULTS = {Status.DONE: "OK", Status.SKIPPED: "skip", Status.FAILED: "error"}
_DONE = {"OK", "skip"}
_LONGEST = 64 * 1024


class Manifest:
    """The manifest in the file `path`, as a context manager, which makes the file if it is missing.

    TransferError if the file cannot be read or written, or is no manifest. With `skips=False` it only appends: no item
    counts as done before.
    """

    def __init__(self, path: StrPath, *, skips: bool = True) -> None:
        self._path = Path(path)
        self._skips = skips
        self._done: set[int] = set()  # hashes: a million names would take too much memory
        self._columns: tuple[str, ...] = COLUMNS
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._read()
            # Only its owner may read a new file: names and errors may be confidential.
            self._file = open(self._path, "ab", buffering=0, opener=partial(os.open, mode=0o600))
        except OSError as error:
            raise self._make_error(error) from error
        try:
            if os.fstat(self._file.fileno()).st_size == 0:
                self._write(COLUMNS)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def has(self, item: Item) -> bool:
        """Return whether an earlier run recorded this pair of source and target as done or skipped."""
        return bool(self._done) and hash((str(item.source), str(item.target))) in self._done

    def add(self, outcome: Outcome) -> None:
        item = outcome.item
        values = {
            "Source": str(item.source),
            "Destination": str(item.target),
            "Start": _format_time(outcome.began),
            "End": _format_time(outcome.began + outcome.seconds),
            "Crc32c": outcome.crc32c or "",
            "Generation": outcome.generation or "",
            "Source Size": "" if item.size is None else item.size,
            "Bytes Transferred": outcome.bytes,
            "Result": _RESULTS[outcome.status],
            "Description": redact(outcome.error or ""),
        }
        self._write([values.get(column, "") for column in self._columns])

    def _read(self) -> None:
        """Read the lines of earlier runs, and cut off a line that a dead process has left unfinished."""
        if not self._path.is_file():  # it does not exist yet, or is a pipe
            return
        end, rest = 0, b""
        header: list[str] = []
        with self._path.open("rb") as file:
            for raw, row in _read_rows(file):
                if not raw.endswith(b"\n"):
                    rest = raw
                    break
                end += len(raw)
                if not header:
                    header = self._check_header(row)
                    continue
                values = dict(zip(header, row, strict=False))
                if self._skips and values.get("Result") in _DONE:
                    self._done.add(hash((values["Source"], values["Destination"])))
            if rest and not header and not _format_line(COLUMNS).startswith(rest):
                self._check_header([])
        if rest:
            os.truncate(self._path, end)

    def _check_header(self, row: list[str]) -> list[str]:
        if not {"Source", "Destination", "Result"} <= set(row):
            raise TransferError(f"{self._path} is not a manifest: it has no such header", "name another file")
        self._columns = tuple(row)
        return row

    def _write(self, row: Sequence[object]) -> None:
        """Write a line in one call, so that all lines are whole whenever the process dies."""
        if self._file is None:
            raise RuntimeError("a Manifest must be entered before it is used: `with Manifest(path) as manifest:`")
        data = _format_line(row)
        try:
            written = os.write(self._file.fileno(), data)
        except OSError as error:
            raise self._make_error(error) from error
        if written < len(data):
            raise TransferError(
                f"cannot write the manifest {self._path}: the disk is full", "make room, then start again"
            )

    def _make_error(self, error: OSError) -> TransferError:
        return unwritable(self._path, error, verb="write the manifest", named=not os.path.lexists(self._path))


def _format_line(row: Sequence[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(row)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _read_rows(file: BinaryIO) -> Iterator[tuple[bytes, list[str]]]:
    """Yield each row of a CSV file as bytes and as its parsed values; the last row may lack its line end.

    A quoted line end does not end a row. A quote that is never closed, because a process died or a user edited the
    file, spoils its own line and no other.
    """
    at = columns = 0
    while line := file.readline():
        row = line
        while row.count(b'"') % 2 and len(row) < _LONGEST and (more := file.readline()):
            row += more
        values = _parse_values(row)
        if len(row) > len(line) and len(values) != columns:
            row, values = line, _parse_values(line)
            file.seek(at + len(row))
        at += len(row)
        columns = columns or len(values)
        yield row, values


def _parse_values(raw: bytes) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(raw.decode("utf-8", "surrogateescape"), newline="")))
    except csv.Error:  # a field longer than any name
        return []


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""
