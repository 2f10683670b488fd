"""The bodies of requests: bytes, files, forms, and stdin, which is read once and can be sent again."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO

from forbear.adapters import CurlLine, dataclass
from forbear.cli.kit.output import BadInput
from forbear.cli.kit.values import MAX_BODY, file_content

STDIN_IN_MEMORY = MAX_BODY
"""The longest stdin for `-d @-`, in bytes."""

STDIN_UPLOAD = 1024 * 1024 * 1024
"""The longest stdin for `-T -`, in bytes; more than `_SPOOLED` of them go to a temporary file."""

_SPOOLED = 8 * 1024 * 1024
_CHUNK = 64 * 1024
_PART_OPTION = re.compile(r";\s*(type|filename|headers|encoder)=")


@dataclass(frozen=True, slots=True)
class RequestContent:
    """A body that can be sent any number of times: `data` in memory, else an open `file`, else the parts of a `form`.

    `form` is a list for the `files=` of httpx, whose open files are also in `files`.
    """

    data: bytes = b""
    file: Any = None
    form: list[tuple[str, tuple[Any, ...]]] | None = None
    files: tuple[Any, ...] = ()

    @property
    def in_memory(self) -> bytes | None:
        """The bytes of the body; None if they are not in memory."""
        return self.data if self.file is None and self.form is None else None

    def arguments(self) -> dict[str, Any]:
        """Return the keywords of `httpx.Request` for this body, from its start; {} for an empty one."""
        for file in (self.file, *self.files):
            if file is not None:
                file.seek(0)
        if self.form is not None:
            return {"files": self.form}
        if self.file is not None:
            return {"content": self.file}
        return {"content": self.data} if self.data else {}


def stdin_bytes() -> bytes:
    """Return all of stdin; BadInput if it is longer than `STDIN_IN_MEMORY` or cannot be read."""
    return b"".join(_read_stdin(STDIN_IN_MEMORY, "-X METHOD -T FILE"))


def content_of(line: CurlLine, stack: ExitStack) -> RequestContent:
    """Return the body of a line; its files stay open until `stack` ends. BadInput if a file cannot be read."""
    kinds = [line.sends_data, bool(line.form), line.file is not None]
    if sum(kinds) > 1:
        raise BadInput("-d, -F and -T exclude each other", "choose one way to send the body")
    if line.file is not None:
        return RequestContent(file=_spool_stdin(stack) if line.file == "-" else _open_file(line.file, stack))
    if line.form:
        parts = [_parse_part(option, value, stack) for option, value in line.form]
        files = [content for _, (_, content, *_) in parts if not isinstance(content, bytes)]
        return RequestContent(form=parts, files=tuple(files))
    return RequestContent(line.draft.body or b"")


def _spool_stdin(stack: ExitStack) -> Any:
    spool = stack.enter_context(SpooledTemporaryFile(max_size=_SPOOLED))  # noqa: SIM115 - the stack closes it
    for chunk in _read_stdin(STDIN_UPLOAD, "-T FILE; for Cloud Storage use `forbear cp - gs://BUCKET/NAME`"):
        spool.write(chunk)
    spool.seek(0)
    spool.rollover()  # httpx reads the length from a real file
    return spool


def _read_stdin(most: int, instead: str) -> Iterator[bytes]:
    """Yield stdin in chunks; BadInput, with the options to use `instead`, if it has more than `most` bytes."""
    length = 0
    try:
        while sys.stdin is not None and (chunk := sys.stdin.buffer.read(_CHUNK)):
            length += len(chunk)
            if length > most:
                text = f"the body on stdin is longer than {most >> 20} MiB, the most that can be sent again"
                raise BadInput(text, f"write it to a file, and send that: {instead}")
            yield chunk
    except OSError as error:
        raise BadInput(f"cannot read stdin: {error.strerror}", "name a file instead of -") from None


def _open_file(name: str, stack: ExitStack) -> BinaryIO:
    if name == ".":
        raise BadInput("the curl option --upload-file . is not supported", "use -T - to read stdin")
    try:
        file: BinaryIO = stack.enter_context(Path(name).open("rb"))  # noqa: SIM115 - the stack closes it
        if not file.seekable() or (os.fstat(file.fileno()).st_size == 0 and file.read(1)):  # a pipe, a device, /proc
            raise BadInput(f"{name} is no file that states its length", "use -T - to read a stream from stdin")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read the body from {name}: {reason}", "name a file that you may read") from None
    return file


def _parse_part(option: str, value: str, stack: ExitStack) -> tuple[str, tuple[Any, ...]]:
    """Return one part of a form for httpx: its name, and file name (None for a field), content and type."""
    name, equals, text = value.partition("=")
    if not equals or not name:
        raise BadInput("a part of a form must have a name", "write it as -F 'NAME=VALUE' or -F 'NAME=@FILE'")
    if option == "form-string":
        return name, (None, text.encode(errors="replace"))
    text, *options = _PART_OPTION.split(text)
    settings = dict(zip(options[::2], options[1::2], strict=True))
    for unknown in ("headers", "encoder"):
        if unknown in settings:
            raise BadInput(f"the form option ;{unknown}= is not supported", "leave it out")
    kind = (settings["type"].strip(),) if "type" in settings else ()
    filename = _unquote(settings["filename"]) if "filename" in settings else None
    if text[:1] not in ("@", "<"):
        return name, (filename, _unquote(text).encode(errors="replace"), *kind)
    path = _unquote(text[1:])
    content: Any = stdin_bytes() if path == "-" else _open_file(path, stack)
    if text[0] == "<":
        if not isinstance(content, bytes):
            content = file_content(path, MAX_BODY, "send it as a file: -F 'NAME=@FILE'")
        return name, (filename, content, *kind)
    return name, (filename or Path(path).name, content, *kind)


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
