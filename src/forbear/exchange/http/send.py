"""The request that an adapter sends next: the caller's own, or a variation of it."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE_BODY = ("transfer-encoding", "expect", "content-md5", "content-digest", "digest")
"""Headers (lower case) that describe the whole body: an adapter drops them when it sends only a part."""


class Send(Record):
    """The caller's request with `headers` set (lower-case names) and `query` appended to its query string.

    The first `skip` bytes of the body are left out, with None the whole body. In both cases `headers` has the length.
    """

    __slots__ = ("headers", "query", "skip")

    headers: "Mapping[str, str]"
    query: str
    skip: int | None

    def __init__(self, headers: "Mapping[str, str] | None" = None, query: str = "", skip: int | None = 0) -> None:
        self._set(headers=headers or {}, query=query, skip=skip)

    @property
    def is_original(self) -> bool:
        """True if nothing is varied."""
        return self is ORIGINAL


ORIGINAL = Send()
