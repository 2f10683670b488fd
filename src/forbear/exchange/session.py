"""A resumable upload's own protocol, as far as one chunk goes: ask, go on, and notice progress. It sends nothing."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.exchange.chunk import Chunk
    from forbear.exchange.send import Send
    from forbear.http.request import Judgement, Request, Service


class Session:
    """The session that a chunk belongs to; `asking` is the judgement on the question under way, None without one."""

    __slots__ = ("asking", "_chunk", "_got_on", "_stored")

    def __init__(self, chunk: "Chunk") -> None:
        self.asking: Judgement | None = None
        self._chunk = chunk
        self._stored = 0
        self._got_on = False

    def ask(self, service: "Service", request: "Request") -> "Send":
        """The question how much the session has, after `request` (or an earlier question) failed."""
        question = self._chunk.question()
        self.asking = service.classify(request.replace(headers={**request.headers, **question.headers}, body=b""))
        return question

    def answered(self, status: int, headers: "Mapping[str, str]") -> "Send | None":
        """What to send after a reply, None where that is the caller's: it answers no question, or ends the matter."""
        rest = None if self.asking is None else self._chunk.rest(status, headers)
        if rest is not None:
            stored = rest.skip or 0
            self._got_on = stored > self._stored
            self._stored = max(stored, self._stored)  # a session that forgets and regains bytes does not get on
            self.asking = None
        return rest

    def has_got_on(self) -> bool:
        """Whether the session has got further since this was asked last."""
        got_on, self._got_on = self._got_on, False
        return got_on
