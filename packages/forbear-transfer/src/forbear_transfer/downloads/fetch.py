"""Request the bytes of one version of an object until a sink has all of them and their checksum is right.

This is where a download continues after its connection broke: the next request begins at the byte that the sink needs.
Bytes of two generations are never joined.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from forbear.verdicts import PERMANENT, TRANSIENT, Verdict
from forbear_transfer.checksum import Crc32c
from forbear_transfer.downloads.description import GZIP, BodyDescription, Contradiction, WrongEncoding, describe_body
from forbear_transfer.downloads.sinks import GZIP_MAGIC, FileSink, Sink
from forbear_transfer.encryption import EncryptionKey, key_of
from forbear_transfer.errors import ChecksumMismatch, HttpError, Stalled, TransferError, WrongResponse
from forbear_transfer.objects import Object
from forbear_transfer.progress import current_progress
from forbear_transfer.storage.calls import Retries, Sent
from forbear_transfer.storage.client import Storage
from forbear_transfer.wire.response import Response, WireError

FAILURES = (WireError, OSError, HttpError, Stalled, WrongResponse)
"""The errors of one attempt whose verdict decides on another attempt. Any other error ends the download."""

_MAX_IGNORED_RANGES = 2


class Gone(Exception):
    """The version is gone (`error` is an HttpError, 404), or not as its metadata described it (a Contradiction)."""

    def __init__(self, error: HttpError | Contradiction) -> None:
        super().__init__(error)
        self.error = error


class Unsliceable(Exception):
    """The server does not serve ranges of the object, so it cannot be downloaded in slices."""


class Received(Protocol):
    """The bytes of a whole object that have arrived so far: one sink, or one for each slice.

    `decoded` is true if the server has decoded the stored gzip.
    """

    decoded: bool

    @property
    def position(self) -> int: ...

    @property
    def checksum(self) -> Crc32c: ...

    def restart(self) -> None: ...


class Fetch:
    """The requests for the bytes of one version of an object.

    `decode` allows the server to decode stored gzip; otherwise a decoded response raises TransferError. `keys` are the
    customer-supplied keys that the object may have; NoEncryptionKey if it has another one.
    """

    def __init__(self, storage: Storage, version: Object, *, decode: bool, keys: Sequence[EncryptionKey] = ()) -> None:
        self.version = version
        url = version.url
        self._sent = Sent("GET", url)
        self._storage = storage
        self._url = storage.url(url.path, {"alt": "media", "generation": version.generation})
        self._decode = decode
        self._key = storage.key_headers(key_of(version, keys))
        self._encoding = GZIP
        self._ignored_ranges = 0

    async def fill_verified(
        self,
        received: Received,
        fill: Callable[[Response | None], Awaitable[None]],
        response: Response | None,
        *,
        restarts: int,
    ) -> None:
        """Call `fill` if `received` lacks bytes, then compare the CRC32C of all bytes with that of the object.

        `fill` gets `response`, an open response with the object from its first byte, or None; later calls get None. On
        a mismatch, discard everything and fetch it again, at most `restarts` times and only while the policy allows it;
        then raise ChecksumMismatch. Bytes that the server has decoded are not compared, since their checksum is not
        known. If they are the stored bytes after all, `received.decoded` becomes False.
        """
        version = self.version
        retries: Retries | None = None
        while True:
            if received.position < version.size or not version.size:
                await fill(response)
            elif response is not None:
                response.close()  # unread, it could keep the server from the next request
            response = None
            crc32c = received.checksum.text
            if received.decoded and crc32c == version.crc32c and received.position == version.size:
                received.decoded = False  # there was nothing to decode: these are the stored bytes
            if received.decoded or crc32c == version.crc32c:
                return
            error = ChecksumMismatch(
                f"{version.url} arrived with other bytes: their CRC32C is {crc32c}, and should be {version.crc32c}"
            )
            retries = retries or Retries(self._storage.policy, self._sent)
            await retries.after(error, TRANSIENT if restarts else PERMANENT)
            restarts -= 1
            current_progress.get().moved(-received.position)
            received.restart()

    async def fill(self, sink: Sink, response: Response | None = None) -> None:
        """Fetch the bytes that `sink` lacks, with as many requests as it takes.

        `response` may have the first of them already. Raise Gone for a 404, or for a Contradiction while the sink is at
        byte 0. Raise Unsliceable, or the last failure once the policy allows no further attempt. Progress beyond the
        furthest byte so far starts the policy's limits anew.
        """
        retries = Retries(self._storage.policy, self._sent)
        furthest = sink.position
        while True:
            if response is None:
                retries.begin()
            try:
                opened, response = response, None
                if opened is None:
                    opened = await self._storage.stream("GET", self._url, self._make_headers(sink))
                try:
                    complete = await self._receive(opened, sink)
                finally:
                    opened.close()  # unread bytes must not keep the server from the next request
            except FAILURES as error:
                if isinstance(error, HttpError) and error.status == 404:
                    _start_over(sink)
                    raise Gone(error) from error
                if isinstance(error, Contradiction) and sink.position == 0:  # the metadata may have changed
                    raise Gone(error) from error
                if sink.position > furthest:
                    furthest = sink.position
                    retries.progressed()
                    if furthest == sink.end and not sink.decoded and isinstance(error, WireError | OSError | Stalled):
                        return  # all bytes are here, and only the end of the response is missing
                await retries.after(error, self._verdict(error, sink))
            else:
                if complete:
                    retries.progressed()
                    return

    def _make_headers(self, sink: Sink) -> dict[str, str]:
        headers = {"Accept-Encoding": self._encoding, **self._key}
        if not sink.decoded and (sink.position > 0 or sink.end < self.version.size):
            end = "" if sink.end == self.version.size else sink.end - 1
            headers["Range"] = f"bytes={sink.position}-{end}"
        return headers

    async def _receive(self, response: Response, sink: Sink) -> bool:
        """Write to the sink what it needs of a response; return False if it needs more bytes after them."""
        if response.status not in (200, 206):
            raise await self._storage.error_for(str(self._sent), response)
        body = describe_body(self.version, sink.position, sink.end, response.status, response.headers)
        if body.decoded:
            body = body.with_head(await response.peek(len(GZIP_MAGIC)), self.version)
        self._prepare(sink, body)
        limit = body.limit(self.version)
        stop = limit if body.decoded else min(limit, sink.end)
        await self._pour(response, sink, stop, whole=stop == limit)
        if body.end is not None and sink.position < stop:
            raise WrongResponse(f"{self._sent}: the response ended after {sink.position} of {stop} bytes")
        return body.decoded or sink.position == sink.end

    async def _pour(self, response: Response, sink: Sink, stop: int, *, whole: bool) -> None:
        """Write the body to the sink, up to byte `stop`.

        If the `whole` body should end there, read it to its end, and raise WrongResponse if it goes on. Otherwise the
        sink needs only the beginning of the body.
        """
        moved = current_progress.get().moved

        def cut(data: bytes) -> bytes:
            if sink.position + len(data) <= stop:
                return data
            if whole:
                raise WrongResponse(f"{self._sent}: the response goes on after byte {stop}, where it should end")
            return data[: stop - sink.position]

        if isinstance(sink, FileSink):
            write = sink.write

            def take(data: bytes) -> bool:
                data = cut(data)
                write(data)
                moved(len(data))
                return whole or sink.position < stop

            await response.pour(take)
            return
        while (whole or sink.position < stop) and (data := await response.readany()):
            data = cut(data)
            await sink.write(data)
            moved(len(data))

    def _prepare(self, sink: Sink, body: BodyDescription) -> None:
        """Restart a sink for a whole object if `body` is decoded or does not continue at the sink's position.

        If the sink is a slice, raise Unsliceable where the body is decoded. Where it does not continue, raise
        WrongResponse the first two times (of all slices), then Unsliceable. Raise TransferError for a decoded body if
        `decode` is False.
        """
        whole = sink.start == 0 and sink.end == self.version.size
        if body.decoded:
            if not self._decode:
                raise TransferError(
                    f"{self._sent}: the server decodes it on the way, so its stored bytes are not available",
                    "download it decoded, or bypass the proxy if there is one",
                )
            if not whole:
                raise Unsliceable
            _start_over(sink, decoded=True)
        elif sink.decoded or body.first != sink.position:
            if whole:
                _start_over(sink)
                return
            self._ignored_ranges += 1
            if self._ignored_ranges > _MAX_IGNORED_RANGES:
                raise Unsliceable
            raise WrongResponse(f"{self._sent}: a range was requested, and the response has the whole object")

    def _verdict(self, error: Exception, sink: Sink) -> Verdict:
        """Return the verdict on a failure, and change what the next request asks for."""
        if isinstance(error, WrongEncoding):
            self._encoding = "identity"
        if isinstance(error, WrongResponse):
            return TRANSIENT
        if isinstance(error, HttpError) and error.status == 416:  # by its metadata, the object does have this byte
            _start_over(sink)
            return TRANSIENT
        return self._storage.verdict(error)


def _start_over(sink: Sink, *, decoded: bool = False) -> None:
    current_progress.get().moved(sink.start - sink.position)
    sink.restart(decoded=decoded)
