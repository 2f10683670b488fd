"""Continue a chunk of a resumable upload whose outcome is unknown.

Query the session for the bytes it has, then send only the rest.

Source: the resumable upload protocol of Cloud Storage.
"""

from forbear.exchange.http.send import ORIGINAL, Send
from forbear.http import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.core.service import Judgement
    from forbear.http.request import HttpService, Request


class Chunk:
    """One chunk of an upload: the bytes from `start` to before `end`, out of `total` ("*" if that is unknown).

    `end` is None for a whole object of unknown length.
    """

    __slots__ = ("start", "end", "total")

    def __init__(self, start: int, end: int | None, total: str) -> None:
        self.start = start
        self.end = end
        self.total = total

    @classmethod
    def of(cls, request: "Request") -> "Chunk | None":
        """Return the chunk that a request carries, None if its Content-Range does not say which bytes it has.

        A request without Content-Range carries all of the object.
        """
        part = ranges.sent(request.headers)
        if part is None:
            return None
        end = None if part.last is None else part.last + 1
        return cls(part.first or 0, end, "*" if part.total is None else str(part.total))

    def question(self) -> Send:
        """Return the status query: the request that asks the session how many bytes it has."""
        return Send({"content-range": f"bytes */{self.total}", "content-length": "0"}, skip=None)

    def rest(self, status: int, headers: "Mapping[str, str]") -> Send | None:
        """Return the request to send after the response to the status query, None if the caller gets that response.

        It is the original one if the session has nothing of this chunk, else one with the rest. The caller gets any
        response but a 308, such as that of a complete upload. The caller also gets a 308 if the session has all of this
        chunk, or lacks earlier bytes, which only the caller can send again.
        """
        if status != 308:
            return None
        has = _stored(headers.get("range", ""))
        if has == self.start:
            return ORIGINAL
        if self.end is None or not self.start < has < self.end:
            return None
        left = {"content-range": f"bytes {has}-{self.end - 1}/{self.total}", "content-length": str(self.end - has)}
        return Send(left, skip=has - self.start)


def _stored(named: str) -> int:
    """Return how many bytes a session has, by the Range header of its 308; 0 if the header is missing or unreadable."""
    last = ranges.number(named.rpartition("-")[2].strip())
    return 0 if last is None else last + 1


class ChunkSession:
    """The session of a chunk; `query` is the judgement on the status query under way, None if there is none."""

    __slots__ = ("query", "_chunk", "_got_on", "_stored")

    def __init__(self, chunk: "Chunk") -> None:
        self.query: Judgement | None = None
        self._chunk = chunk
        self._stored = 0
        self._got_on = False

    def ask(self, service: "HttpService", request: "Request") -> "Send":
        """Return the status query to send after `request` or an earlier status query failed; `service` judges it.

        The judgement becomes `query`.
        """
        question = self._chunk.question()
        self.query = service.classify(request.replace(headers={**request.headers, **question.headers}, body=b""))
        return question

    def answered(self, status: int, headers: "Mapping[str, str]") -> "Send | None":
        """Return the request to send after the response to a status query, None if the caller gets the response.

        None also for a response to the chunk itself.
        """
        rest = None if self.query is None else self._chunk.rest(status, headers)
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
