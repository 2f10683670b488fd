"""Fetch: asks for the bytes of one version of an object until they are all there. Where they go is the sink's business.

After a break it goes on from the byte where the sink is. Replies are joined only if they are of the same generation.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Protocol

from forbear.core.verdict import PERMANENT, TRANSIENT, Verdict
from forbear.transfer.checksum import Crc32c
from forbear.transfer.downloads.description import GZIP, Contradiction, Promise, Recoded, promised
from forbear.transfer.downloads.sinks import Sink
from forbear.transfer.errors import ChecksumMismatch, HttpError, Stalled, TransferError, WrongResponse
from forbear.transfer.objects import Object
from forbear.transfer.progress import current_progress
from forbear.transfer.storage.calls import Retries
from forbear.transfer.storage.client import Storage
from forbear.transfer.wire.response import Response, WireError

FAILURES = (WireError, OSError, HttpError, Stalled, WrongResponse)
"""What may come of an attempt, and be no more than a failure of it."""

_RANGES_IGNORED = 2


class Gone(Exception):
    """That version of the object is not there any more, or not as it was described, by what `error` says."""

    def __init__(self, error: HttpError | Contradiction) -> None:
        super().__init__(error)
        self.error = error


class Unsliceable(Exception):
    """The server does not serve ranges of the object."""


class Fetch:
    """The requests for one version of an object."""

    def __init__(self, storage: Storage, version: Object, *, decode: bool) -> None:
        self.version = version
        self.what = f"download {version.url}"
        self.policy = storage.policy
        self._storage = storage
        self._url = storage.url(version.url.path, {"alt": "media", "generation": version.generation})
        self._decode = decode
        self._encoding = GZIP
        self._ranges_ignored = 0

    async def fill(self, sink: Sink, reply: Response | None = None) -> None:
        """Bring the bytes that `sink` lacks; the first ones are in `reply`, if there is one already.

        Raises Gone, Unsliceable, and what ends the retries: the last failure, with a report.
        """
        retries = Retries(self.policy, self.what)
        furthest = sink.position
        while True:
            try:
                if reply is None:
                    async with self._storage.stream("GET", self._url, self._headers(sink)) as response:
                        ended = await self._receive(response, sink)
                else:
                    with closing(reply) as response:  # what is left of it must not keep the server from the next
                        reply = None
                        ended = await self._receive(response, sink)
            except FAILURES as error:
                if isinstance(error, HttpError) and error.status == 404:
                    _start_over(sink)
                    raise Gone(error) from error
                if isinstance(error, Contradiction) and sink.position == 0:  # the metadata may be new by now
                    raise Gone(error) from error
                if sink.position > furthest:
                    furthest = sink.position
                    retries.progressed()
                await retries.after(error, self._verdict(error, sink))
            else:
                if ended:
                    retries.progressed()
                    return

    def _headers(self, sink: Sink) -> dict[str, str]:
        headers = {"Accept-Encoding": self._encoding}
        if not sink.decoded and (sink.position > 0 or sink.end < self.version.size):
            end = "" if sink.end == self.version.size else sink.end - 1
            headers["Range"] = f"bytes={sink.position}-{end}"
        return headers

    async def _receive(self, response: Response, sink: Sink) -> bool:
        """Hand the body of a reply to the sink; whether the sink has all of it."""
        if response.status not in (200, 206):
            raise await self._storage.error_for(self.what, response)
        promise = promised(self.version, sink.position, sink.end, response.status, response.headers)
        moved, read = current_progress.get().moved, response.readany
        head = b""
        if promise.decoded:
            while len(head) < 2 and (more := await read()):
                head += more
            promise = promise.seen(head, self.version)
        self._prepare(sink, promise)
        most = promise.most(self.version)
        stop = most if promise.decoded else min(most, sink.end)
        part = stop < most  # of the whole, the sink wants the beginning
        while data := head or await read():
            head = b""
            if sink.position + len(data) > stop:
                if not part:
                    raise WrongResponse(f"{self.what}: the reply goes on after byte {stop}, which should be its last")
                data = data[: stop - sink.position]
            await sink.write(data)
            moved(len(data))
            if part and sink.position == stop:
                return True
        if promise.end is not None and sink.position < stop:
            raise WrongResponse(f"{self.what}: the reply ended after {sink.position} of {stop} bytes")
        return promise.decoded or sink.position == sink.end

    def _prepare(self, sink: Sink, promise: Promise) -> None:
        """Have the sink stand where the reply begins."""
        whole = sink.start == 0 and sink.end == self.version.size
        if promise.decoded:
            if not self._decode:
                raise TransferError(
                    f"{self.what}: the server decodes it on the way, so its stored bytes cannot be had",
                    "take it decoded, or ask the server itself where a proxy is between",
                )
            if not whole:
                raise Unsliceable
            _start_over(sink, decoded=True)
        elif sink.decoded or promise.first != sink.position:
            if whole:
                _start_over(sink)
                return
            self._ranges_ignored += 1
            if self._ranges_ignored > _RANGES_IGNORED:
                raise Unsliceable
            raise WrongResponse(f"{self.what}: a part was asked for, and the whole came")

    def _verdict(self, error: Exception, sink: Sink) -> Verdict:
        if isinstance(error, Recoded):
            self._encoding = "identity"
        if isinstance(error, WrongResponse):
            return TRANSIENT
        if isinstance(error, HttpError) and error.status == 416:  # the byte is there, by what was said of the object
            _start_over(sink)
            return TRANSIENT
        return self._storage.verdict(error)


def _start_over(sink: Sink, *, decoded: bool = False) -> None:
    current_progress.get().moved(sink.start - sink.position)
    sink.restart(decoded=decoded)


class Target(Protocol):
    """All the bytes of an object, as far as they have arrived, and their checksum."""

    decoded: bool

    @property
    def position(self) -> int:
        """How many bytes have arrived."""
        ...

    @property
    def checksum(self) -> Crc32c:
        """The checksum of them."""
        ...

    def restart(self) -> None:
        """Begin anew."""
        ...


async def fill_checked(
    fetch: Fetch,
    sink: Target,
    fill: Callable[[Response | None], Awaitable[None]],
    reply: Response | None,
    *,
    restarts: int,
) -> None:
    """Bring what is missing, and everything once more where the checksum is wrong, for at most so many `restarts`.

    `reply` has the object from its beginning, if it is there already. What the server decoded has no checksum.
    """
    version, retries = fetch.version, Retries(fetch.policy, fetch.what)
    while True:
        if sink.position < version.size or not version.size:
            await fill(reply)
        elif reply is not None:
            reply.close()  # unread, it could keep the server from the next
        reply = None
        found = sink.checksum.text
        if sink.decoded and found == version.crc32c and sink.position == version.size:
            sink.decoded = False  # nothing was there to be undone: these are the stored bytes
        if sink.decoded or found == version.crc32c:
            retries.progressed()
            return
        error = ChecksumMismatch(
            f"{version.url} arrived with other bytes: their CRC32C is {found}, and should be {version.crc32c}"
        )
        await retries.after(error, TRANSIENT if restarts else PERMANENT)
        restarts -= 1
        current_progress.get().moved(-sink.position)
        sink.restart()
