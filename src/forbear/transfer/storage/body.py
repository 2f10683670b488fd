"""Body: what a request for an upload carries, read piece by piece as the server takes it. It knows no file."""

from collections.abc import Callable, Iterable, Iterator

_SPENT = "the body can be read only once"


class Body:
    """`size` bytes of data, read anew for each attempt, with a few more before (`opening`) and after (`ending`).

    `moved` is called with the bytes that the server takes, and with a negative count where they must go again; `told`
    is their sum. A body that is not `repeatable` is sent again by nobody but the transfer itself. `failed` is whether
    it could not be read. `sent` is called when all is written.
    """

    once = False

    def __init__(
        self,
        pieces: Callable[[], Iterable[bytes]],
        size: int,
        moved: Callable[[int], None],
        opening: bytes = b"",
        ending: bytes = b"",
        *,
        repeatable: bool = True,
    ) -> None:
        self.told = 0
        self.failed = False
        self.sent: Callable[[], object] = _nothing
        self._pieces = pieces
        self._size = len(opening) + size + len(ending)
        self._moved = moved
        self._opening = opening
        self._ending = ending
        self._repeatable = repeatable

    def __len__(self) -> int:
        return self._size

    def why_not_again(self) -> str | None:
        """Return why the body cannot be sent again, None if it can."""
        return None if self._repeatable and not self.failed else _SPENT

    def pieces(self) -> Iterator[bytes]:
        """Read all of it; a piece counts as moved once the next one is asked for."""
        told, self.told = self.told, 0
        self._moved(-told)
        if self._opening:
            yield self._opening
        for piece in self._read():
            yield piece
            self.told += len(piece)
            self._moved(len(piece))
        if self._ending:
            yield self._ending
        self.sent()

    def _read(self) -> Iterator[bytes]:
        try:
            yield from self._pieces()
        except Exception:
            self.failed = True
            raise


def _nothing() -> None:
    """Nobody waits for it."""
