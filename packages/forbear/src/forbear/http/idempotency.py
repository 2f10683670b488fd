"""`IdempotencyKey`: a header by which APIs recognise a repeated write and do not execute it again."""

from forbear.core.record import Record
from forbear.http.patterns import origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from forbear.http.patterns import Origin

IN_USE = 409
"""The status by which an API says that the request with the same key is still being executed.

Source: draft-ietf-httpapi-idempotency-key-header, §2.7. A key that was used for another request is answered 422.
"""


class IdempotencyKey(Record):
    """A header by which an API drops duplicates: `IdempotencyKey("Idempotency-Key", "https://api.example.com")`.

    A write to one of the origins that carries the header may be repeated, since all its attempts carry the same key. It
    does not apply to any other origin: a redirect elsewhere is not repeated by it. The response 409 means that a
    request with the same key is still being executed, and is transient. To a new key that no server has seen yet, a 409
    is an ordinary conflict. A 422 is permanent.

    - `header`: the name of the header.
    - `origins`: where the API honours it, one or several: "https://api.example.com", "http://localhost:8000". A host
      alone means https.
    - `add`: with True, a write without the header gets a new key, a UUID. By default only the caller's keys count.

    It does not apply to services that forbear knows: they have a header of their own, or none. TypeError or ValueError
    for wrong values.
    """

    __slots__ = ("header", "origins", "add", "_parsed")

    header: str
    origins: tuple[str, ...]
    add: bool
    _parsed: "frozenset[Origin]"

    def __init__(self, header: str, origins: "str | Iterable[str]", add: bool = False) -> None:
        if not _is_name(header):
            raise TypeError(f'`header` must be the name of a header, such as "Idempotency-Key"; got {header!r}')
        if not isinstance(add, bool):
            raise TypeError(f"`add` must be True (send a new key with a write that has none) or False, got {add!r}")
        listed = _listed(origins)
        parsed = frozenset(origin_of(origin, _RULE) for origin in map(_with_scheme, listed))
        self._set(header=header, origins=listed, add=add, _parsed=parsed)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("header", "origins", "add")  # the other follows from them

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the origins, sorted, without scheme and port."""
        return tuple(sorted({host for _, host, _ in self._parsed}))

    def is_for(self, origin: "Origin") -> bool:
        """Return whether a request to `origin` (`Request.origin`) may carry the key."""
        return origin in self._parsed


_RULE = '`origins` must be where the API honours the header, such as "https://api.example.com"'


def _is_name(header: object) -> bool:
    return isinstance(header, str) and header.isascii() and header.replace("-", "").replace("_", "").isalnum()


def _listed(origins: object) -> tuple[str, ...]:
    """Return origins as a tuple of strings, not parsed yet; TypeError or ValueError for anything else."""
    try:
        listed: tuple[object, ...] = (origins,) if isinstance(origins, str) else (*origins,)  # type: ignore[misc]
    except TypeError:
        raise TypeError(f"{_RULE}; got {origins!r}") from None
    if not listed:
        raise ValueError(f"{_RULE}; got none")
    texts = tuple(origin for origin in listed if isinstance(origin, str))
    if len(texts) < len(listed):
        raise TypeError(f"{_RULE}; got {listed!r}")
    return texts


def _with_scheme(origin: str) -> str:
    return origin if "://" in origin else f"https://{origin}"
