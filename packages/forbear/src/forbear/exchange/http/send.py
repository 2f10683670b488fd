"""The content of an attempt: the caller's request or a variation of it, and its body (bytes, files, forms, streams).

Every attempt sends the whole body from its start, or raises. A body is never sent from its middle, except to an upload
session that has the bytes before: `ChunkSession` queries it, and then sends only the rest. Source: the resumable upload
protocol of Cloud Storage.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from itertools import takewhile
from typing import Any, Protocol, cast

from forbear.core.record import Record
from forbear.http import ranges
from forbear.http.bodies import Once, position, rewind, skip_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from forbear.core.service import Judgement
    from forbear.http.request import HttpService, Request

_WHOLE_BODY = ("transfer-encoding", "expect", "content-md5", "content-digest", "digest")
"""Headers (lower case) that describe the whole body, and are left out where only a part of it is sent."""


class Variation(Record):
    """The caller's request with `headers` set (lower-case names) and `query` appended to its query string.

    The first `skip` bytes of the body are left out (default 0), with None the whole body. If any are left out,
    `headers` has the new length.

    >>> headers = {"accept": "text/csv", "content-md5": "XrY7u+Ae7tCTyyK7j1rNww=="}
    >>> Variation({"content-range": "bytes 5-9/10"}, skip=5).adjust(headers)
    >>> headers
    {'accept': 'text/csv', 'content-range': 'bytes 5-9/10'}
    """

    __slots__ = ("headers", "query", "skip")

    headers: Mapping[str, str]
    query: str
    skip: int | None

    def __init__(self, headers: Mapping[str, str] | None = None, query: str = "", skip: int | None = 0) -> None:
        self._set(headers=headers or {}, query=query, skip=skip)

    @property
    def is_original(self) -> bool:
        """True for the constant ORIGINAL, which varies nothing."""
        return self is ORIGINAL

    def adjust(self, headers: MutableMapping[str, str]) -> None:
        """Set the headers of this variation in `headers`, those of the caller's request, in place.

        If a part or all of the body is left out, headers about the whole body, such as Content-MD5, are removed.
        `headers` must find names in any case.
        """
        if self.skip != 0:
            for name in _WHOLE_BODY:
                if name in headers:
                    del headers[name]  # all of them, where a header may be there more than once
        headers.update(self.headers)


ORIGINAL = Variation()


class ChunkSession:
    """The session of one chunk of an upload: the bytes from `start` to before `end`, out of `total` ("*": unknown).

    `end` is None for a whole object of unknown length. `query` is the judgement on the status query under way, None if
    there is none.
    """

    __slots__ = ("end", "query", "start", "total", "_got_on", "_stored")

    def __init__(self, start: int, end: int | None, total: str) -> None:
        self.start = start
        self.end = end
        self.total = total
        self.query: Judgement | None = None
        self._stored = 0
        self._got_on = False

    @classmethod
    def of(cls, request: "Request") -> "Self | None":
        """Return the session of the chunk that a request carries, None if its Content-Range does not say which bytes.

        A request without Content-Range carries all of the object.
        """
        part = ranges.read_sent_range(request.headers)
        if part is None:
            return None
        end = None if part.last is None else part.last + 1
        return cls(part.first or 0, end, "*" if part.total is None else str(part.total))

    def ask(self, service: "HttpService", request: "Request") -> Variation:
        """Return the status query to send after `request` or an earlier status query failed; `service` judges it.

        The query asks the session how many bytes it has. The judgement becomes `query`.
        """
        question = Variation({"content-range": f"bytes */{self.total}", "content-length": "0"}, skip=None)
        self.query = service.classify(request.replace(headers={**request.headers, **question.headers}, body=b""))
        return question

    def responded(self, status: int, headers: "Mapping[str, str]") -> Variation | None:
        """Return the request to send after the response to a status query, None if the caller gets the response."""
        rest = None if self.query is None else self.find_rest(status, headers)
        if rest is not None:
            stored = rest.skip or 0
            self._got_on = stored > self._stored
            self._stored = max(stored, self._stored)  # a session that loses and regains bytes makes no progress
            self.query = None
        return rest

    def has_progressed(self) -> bool:
        """Return whether the latest status query showed more bytes than any before; a second call returns False."""
        got_on, self._got_on = self._got_on, False
        return got_on

    def find_rest(self, status: int, headers: "Mapping[str, str]") -> Variation | None:
        """Return the original request if the session has nothing of the chunk, else one with the rest.

        The caller gets any response but a 308 (None), such as that of a complete upload. The caller also gets a 308 if
        the session has all of this chunk, or lacks earlier bytes, which only the caller can send again.
        """
        if status != 308:
            return None
        last = ranges.number(headers.get("range", "").rpartition("-")[2].strip())
        has = 0 if last is None else last + 1  # no header, or one that cannot be read: nothing
        if has == self.start:
            return ORIGINAL
        if self.end is None or not self.start < has < self.end:
            return None
        left = {"content-range": f"bytes {has}-{self.end - 1}/{self.total}", "content-length": str(self.end - has)}
        return Variation(left, skip=has - self.start)


class Body(Protocol):
    """A body that may have to be sent again. Example: see `FixedBody`."""

    @property
    def once(self) -> bool:
        """True if the client's own stream can be read only once, so that even the first attempt must send `chunks`."""
        ...

    @property
    def failed(self) -> bool:
        """True if the caller's own stream raised while it was being sent."""
        ...

    def why_not_again(self) -> str | None:
        """Return the reason why the body cannot be sent again, None if it can."""
        ...


class _SyncBody:
    """A body that is read synchronously, even for an async client."""

    __slots__ = ()

    once = True
    failed = False

    chunks: Callable[[int], Iterator[bytes]]

    def achunks(self, skip: int) -> AsyncIterator[bytes]:
        """Return an async iterator over the body without its first `skip` bytes."""
        return _Async(self.chunks(skip))


class Fixed(_SyncBody):
    """A body of bytes in memory, `content`.

    >>> body = FixedBody(b"order 7")
    >>> [*body.chunks(skip=6)]
    [b'7']
    """

    __slots__ = ("content",)

    once = False

    def __init__(self, content: bytes) -> None:
        self.content = content

    def why_not_again(self) -> None:
        """Return None: bytes can always be sent again."""

    def chunks(self, skip: int) -> Iterator[bytes]:
        yield self.content[skip:]


class Seekable(_SyncBody):
    """A file, of which every attempt sends the bytes from position `start` on; the client reads it as `stream`.

    >>> import io
    >>> file = io.BytesIO(b"order 7")
    >>> body = SeekableBody(file, file, 0)
    >>> [*body.chunks(skip=0)], [*body.chunks(skip=6)]
    ([b'order 7'], [b'7'])
    """

    __slots__ = ("_file", "_start", "_stream")

    def __init__(self, file: object, stream: Iterable[bytes], start: int) -> None:
        self._file = file
        self._stream = stream
        self._start = start

    def why_not_again(self) -> str | None:
        if position(self._file) is not None:
            return None
        return (
            "the body is a file that can no longer be rewound; keep it open until the response arrives, or pass bytes"
        )

    def chunks(self, skip: int) -> Iterator[bytes]:
        if not rewind(self._file, self._start + skip):
            raise ValueError("the file that is the body can no longer be rewound")
        yield from self._stream


class Rendered(_SyncBody):
    """A form, such as a multipart one; each pass over `stream` rewinds its `files`. Example: see `SeekableBody`."""

    __slots__ = ("_files", "_stream")

    def __init__(self, stream: Iterable[bytes], files: Iterable[object]) -> None:
        self._stream = stream
        self._files = tuple(files)

    def why_not_again(self) -> str | None:
        if all(position(file) is not None for file in self._files):
            return None
        return "a file in the form can no longer be rewound; keep it open until the response arrives, or pass bytes"

    def chunks(self, skip: int) -> Iterator[bytes]:
        return skip_bytes(self._stream, skip)


class _Async(AsyncIterator[bytes]):
    """A sync stream for an async client. It is no generator, because trio warns of one that is not read to its end."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


def body_of_stream(stream: Iterable[bytes], file: object, limit: int) -> Seekable | Once:
    """Return the body that a sync client reads through `stream`: Seekable if `file` is a seekable file, else Once.

    >>> import io
    >>> file = io.BytesIO(b"order 7")
    >>> isinstance(streamed_body(file, file, 1024), SeekableBody)
    True
    >>> isinstance(streamed_body(iter([b"order 7"]), None, 1024), OnceBody)
    True
    """
    start = position(file)
    return Once(stream, limit) if start is None else Seekable(file, stream, start)


_PIECE = 64 * 1024


class _Pieces:
    """The chunks of a file or an iterable, as bytes (text in UTF-8); a file can be read again after it was rewound."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        read = getattr(self._source, "read", None)
        pieces = self._source if read is None else takewhile(len, iter(partial(read, _PIECE), None))
        for piece in pieces:
            yield piece.encode() if isinstance(piece, str) else piece


def body_of_file(body: Any, limit: int) -> Fixed | Once | Seekable:
    """Return a body of requests or httplib2: Fixed for text, bytes and None, Seekable for a file, else Once."""
    if body is None or isinstance(body, str):
        return Fixed((body or "").encode())
    if isinstance(body, bytes | bytearray | memoryview):
        return Fixed(bytes(cast("bytes", body)))
    return body_of_stream(_Pieces(body), body, limit)
