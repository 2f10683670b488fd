"""What an adapter sends next: the caller's request, or a variation of it. It knows no client library."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE_BODY = ("transfer-encoding", "expect", "content-md5", "content-digest", "digest")
"""Headers, in lower case, that are true of the whole body only: an adapter leaves them out where part of it is."""


class Send(Record):
    """The caller's request with `headers` set (lower-case names) and `query` appended to its query string.

    Of the body the first `skip` bytes are left out; None leaves out all of it. Either way, `headers` say its length.
    """

    __slots__ = ("headers", "query", "skip")

    headers: "Mapping[str, str]"
    query: str
    skip: int | None

    def __init__(self, headers: "Mapping[str, str] | None" = None, query: str = "", skip: int | None = 0) -> None:
        self._set(headers=headers or {}, query=query, skip=skip)

    @property
    def is_original(self) -> bool:
        """Whether nothing is varied."""
        return self is ORIGINAL


ORIGINAL = Send()
