"""Body: what a request for an upload carries, read piece by piece as the server takes it. It knows no file."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from forbear.transfer.errors import Stalled


class Body(Payload):
    """`size` bytes of data, read anew for each attempt, with a few more before (`opening`) and after (`ending`).

    `moved` is told of the data that the server takes, and of what must go again; it was `told` of so many bytes. A
    server that takes no byte for `stall_timeout` seconds has stalled: aiohttp watches over what it reads, not over what
    it writes. A body that is not `repeatable` is sent again by nobody but the transfer itself. `failure` is why it
    could not be read: a request that failed for this is no failure of the server. `sent` is called when all is written.
    """

    def __init__(
        self,
        pieces: Callable[[], Iterable[bytes]],
        size: int,
        moved: Callable[[int], None],
        stall_timeout: float,
        opening: bytes = b"",
        ending: bytes = b"",
        *,
        repeatable: bool = True,
    ) -> None:
        super().__init__(pieces)
        self.told = 0
        self.failure: Exception | None = None
        self.sent: Callable[[], object] = _nothing
        self._pieces = pieces
        self._size = len(opening) + size + len(ending)
        self._moved = moved
        self._stall_timeout = stall_timeout
        self._opening = opening
        self._ending = ending
        self._consumed = not repeatable

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """It is data."""
        raise TypeError("the body of an upload is no text")

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write all of it; what an earlier attempt has written is taken back."""
        told, self.told = self.told, 0
        self._moved(-told)
        try:
            await writer.write(self._opening)
            for piece in self._read():
                async with asyncio.timeout(self._stall_timeout):
                    await writer.write(piece)
                self.told += len(piece)
                self._moved(len(piece))
            await writer.write(self._ending)
            self.sent()
        except TimeoutError as error:
            raise Stalled(f"the server took no byte for {self._stall_timeout:g} s") from error

    def _read(self) -> Iterator[bytes]:
        try:
            yield from self._pieces()
        except Exception as error:
            self.failure = error
            self._consumed = True
            raise


def _nothing() -> None:
    """Nobody waits for it."""
