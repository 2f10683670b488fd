"""`HandedOut`: the bytes of a body that the caller has received, as far as they may have to be proven again."""

from hashlib import sha256

from forbear.http import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import _Hash

KEPT = 1024 * 1024
"""The bytes of a body that are kept before they are hashed: most bodies are shorter and never break."""


class HandedOut:
    """The bytes of a body that the caller has received: their number, and proof that other bytes are the same.

    `status` and `headers` (lower-case names) are the response's. Up to 1 MiB is kept whole. Of a longer body only a
    hash is kept, and nothing if the validator of the response is the proof. If the bytes are `held` back until the body
    is complete, they are only counted.
    """

    __slots__ = ("count", "held", "_hash", "_headers", "_kept", "_status")

    def __init__(self, status: int, headers: "Mapping[str, str]") -> None:
        self.held = False
        self.restart(status, headers)

    def restart(self, status: int, headers: "Mapping[str, str]") -> None:
        """Begin again with another response, none of whose bytes the caller has."""
        self.count = 0
        self._status = status
        self._headers = headers
        self._kept: list[bytes] | None = []
        self._hash: _Hash | None = None

    def add(self, chunk: bytes) -> None:
        """Add a chunk of bytes that the caller receives next."""
        self.count += len(chunk)
        if self.held:
            return
        if self._kept is not None:
            self._kept.append(chunk)
            if self.count > KEPT:
                self._hash, self._kept = self._make_hash(self._kept), None
        elif self._hash is not None:
            self._hash.update(chunk)

    def forget(self) -> None:
        """Forget the bytes and their hash, because the body has ended."""
        self._hash = self._kept = None

    def digest(self) -> bytes | None:
        """Return the SHA-256 hash of all bytes so far, None if the validator of the response is the proof."""
        known = self._hash if self._kept is None else self._make_hash(self._kept)
        return None if known is None else known.digest()

    def _make_hash(self, chunks: list[bytes]) -> "_Hash | None":
        return None if ranges.is_pinned(self._status, self._headers) else sha256(b"".join(chunks))
