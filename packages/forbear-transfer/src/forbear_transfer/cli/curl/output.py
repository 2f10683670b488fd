"""The output of a run: stdout or a file for headers and body, and the text of `-w` after it."""

import os
import re
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any

import httpx

from forbear.cli.kit.output import BadInput
from forbear_transfer.cli.curl.errors import NOT_WRITTEN, CurlFailed
from forbear_transfer.cli.curl.settings import CurlSettings

_STDOUT = "-"
_VARIABLE = re.compile(r"%\{([^}]*)\}|%%|\\([nrt\\])")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
VARIABLES = (
    "content_type", "exitcode", "http_code", "http_version", "method", "num_redirects", "num_retries",
    "response_code", "scheme", "size_download", "time_total", "url_effective",
)  # fmt: skip
"""The variables that `-w` knows."""


class Sink(AbstractContextManager["Sink", None]):
    """A place for a response: a context manager that discards at its exit what is not finished."""

    size = 0

    def __exit__(self, *error: object) -> None:
        """Discard what is not finished."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write a piece of the response; CurlFailed if it cannot be written."""

    def finish(self) -> None:
        """Complete the output; CurlFailed if that fails."""


class OutputStream(Sink):
    """Writes a response to stdout, each piece at once; binary data only if stdout is no terminal or `-o -` is used."""

    def __init__(self, *, binary: bool) -> None:
        self._checks = not binary and sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        if self._checks and b"\0" in data:
            raise CurlFailed(
                "the response is binary, and stdout is a terminal", NOT_WRITTEN, "use -o FILE, or -o - to print it"
            )
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            sys.stdout = None  # or Python would try to flush it again at exit
            text = "the reader of stdout is gone" if isinstance(error, BrokenPipeError) else error.strerror
            raise CurlFailed(f"cannot write to stdout: {text}", NOT_WRITTEN) from None
        self.size += len(data)


class OutputFile(Sink):
    """Writes a response to a part file beside `path`, and renames it at the end: no half response gets that name.

    A device or a named pipe at `path` is written directly.
    """

    def __init__(self, path: Path, *, create_folders: bool) -> None:
        self._part: Path | None = None
        try:
            if create_folders:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._path = Path(os.path.realpath(path))
            if self._path.exists() and not self._path.is_file():
                self._file: IO[bytes] = self._path.open("wb")
            else:
                handle, part = tempfile.mkstemp(prefix=f".{self._path.name[:100]}.", dir=self._path.parent)
                self._part = Path(part)
                self._part.chmod(_find_mode(self._path))
                self._file = os.fdopen(handle, "wb", buffering=0)
        except (OSError, ValueError) as error:
            raise _explain_failure(path, error) from None

    def write(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise _explain_failure(self._path, error) from None
        self.size += len(data)

    def finish(self) -> None:
        try:
            self._file.close()
            if self._part is not None:
                self._part.replace(self._path)
                self._part = None
        except OSError as error:
            raise _explain_failure(self._path, error) from None

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._file.close()
        if self._part is not None:
            with suppress(OSError):
                self._part.unlink()


def open_sink(settings: CurlSettings, url: str) -> Sink:
    """Return where the response goes: stdout, or the file of `-o` or `-O`; `url` is that of the command line."""
    name = settings.values.get("output")
    if name is None and settings.has("remote-name"):
        path = url.partition("?")[0].partition("#")[0].partition("://")[2].partition("/")[2]
        name = path.rpartition("/")[2]
        if name in ("", ".", ".."):
            raise CurlFailed("the URL has no file name for -O", NOT_WRITTEN, "name the file with -o FILE")
    if name is None:
        return OutputStream(binary=False)
    return file_or_stdout(name, settings.values.get("output-dir", ""), create_folders=settings.has("create-dirs"))


def file_or_stdout(name: str, folder: str = "", *, create_folders: bool = False) -> Sink:
    """Return the sink for a file in `folder`, or for stdout if `name` is "-"."""
    if name == _STDOUT:
        return OutputStream(binary=True)
    return OutputFile(Path(folder) / name, create_folders=create_folders)


def head_of(response: httpx.Response) -> bytes:
    """Return the status line and the headers of a response, as they are printed by `-i`."""
    status = f"{response.http_version} {response.status_code} {response.reason_phrase}".rstrip()
    lines = [status.encode("ascii", "replace"), *(name + b": " + value for name, value in response.headers.raw)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def check_format(template: str) -> None:
    """Raise BadInput if a format of `-w` has a variable that is not known, or is in a file."""
    if template.startswith("@"):
        raise BadInput("the format of -w cannot be read from a file", "write it into the command")
    for match in _VARIABLE.finditer(template):
        if match[1] is not None and match[1] not in VARIABLES:
            raise BadInput(f"-w has no variable {match[1]!r} here", f"the variables are {', '.join(VARIABLES)}")


def format_output(template: str, values: Mapping[str, Any]) -> str:
    """Return a format of `-w` with its variables and escapes replaced."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return str(values.get(match[1], ""))
        return _ESCAPES[match[2]] if match[2] else "%"

    return _VARIABLE.sub(replace, template)


def _find_mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        umask = os.umask(0o077)  # what a thread makes meanwhile is private, not open to all
        os.umask(umask)
        return 0o666 & ~umask


def _explain_failure(path: Path, error: Exception) -> CurlFailed:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return CurlFailed(f"cannot write {path}: {reason}", NOT_WRITTEN, "name a file that you may write")
