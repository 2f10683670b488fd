"""Continue a chunk of a resumable upload whose outcome is unknown.

Query the session for the bytes it has, then send only the rest.

Source: the resumable upload protocol of Cloud Storage.
"""

from forbear.exchange.http.send import ORIGINAL, Variation
from forbear.http import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from forbear.core.service import Judgement
    from forbear.http.request import HttpService, Request


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
        part = ranges.sent(request.headers)
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
