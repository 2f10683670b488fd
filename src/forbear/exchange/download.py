"""Download: the body of a GET that broke halfway goes on where it stopped or not at all; two replies are never mixed.

Where the reply says of which object it is, the rest is asked for with `Range`. Otherwise, or where the server serves no
ranges, the whole is asked for again as long as little was read, and must begin with the very bytes that were handed
out: then what the caller gets is the second reply to the letter. It sends nothing itself.
"""

from forbear.core.decide import Reason, Stop
from forbear.core.report import text_of
from forbear.core.verdict import TRANSIENT, Kind
from forbear.exchange.send import ORIGINAL, Send
from forbear.exchange.signature import is_signed
from forbear.http import preconditions, ranges
from forbear.http.ranges import Unresumable
from forbear.http.status import reason
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.core.verdict import Verdict
    from forbear.exchange.exchange import Exchange


KEPT = 1024 * 1024
"""How much of a body is kept to be compared with a second reply, in bytes."""

_SAME = ("etag", "x-goog-generation", "content-encoding", "content-length", "content-range")
"""Headers by which a second reply would show that it is of something else."""


class Refused(Exception):
    """A reply that does not go on with the body; `name` and the text are for the report."""

    def __init__(self, verdict: "Verdict", name: str, text: str) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.name = name


class Download:
    """The broken body of a reply, whose `status` and `headers` (lower-case names) the caller has seen.

    A break starts a run of its own under the exchange's policy, and progress since the last break starts it anew: a
    long download may break often, as long as it gets on.
    """

    __slots__ = ("send", "_exchange", "_status", "_headers", "_received", "_kept", "_repeated", "_part", "_end",
                 "_run", "_why_not")  # fmt: skip

    def __init__(self, exchange: "Exchange", status: int, headers: "Mapping[str, str]") -> None:
        self.send = ORIGINAL
        self._exchange = exchange
        self._status = status
        self._headers = headers
        self._received = 0
        self._kept: bytes | None = None
        self._repeated = b""
        self._part: ranges.Part | None = None
        self._end: int | None = None  # how long the body is, by the reply that it is continued in
        self._run = self._begin()
        self._why_not: str | None = None

    def finished(self) -> None:
        """Tell the policy's listener and budget that the body is whole all the same."""
        self._run.succeeded()

    def broken(self, error: Exception, verdict: "Verdict", received: int, kept: "list[bytes] | None") -> float | None:
        """Seconds to wait before `send`, None to let `error` out; `verdict` is the adapter's on it.

        The caller has `received` so many bytes; `kept` are they, None if they were more than KEPT.
        """
        if received > self._received:
            self._run = self._begin()
        self._received = received
        self._kept = None if kept is None else b"".join(kept)
        return self.failed(error, error, verdict)

    def failed(self, error: Exception, failure: Exception, verdict: "Verdict") -> float | None:
        """Seconds to wait after a `send` that ended with `failure`, None to let out `error`, the break before it."""
        exchange = self._exchange
        if isinstance(failure, Refused):
            name, verdict = failure.name, failure.verdict
        else:
            name, verdict = type(failure).__qualname__, exchange.judged(failure, verdict)
        if self._why_not is None:
            self._why_not = self._plan()
        blocked = None if self._why_not is None else Stop(Reason.BODY, f"the rest is out of reach: {self._why_not}")
        return self._run.after(
            verdict,
            error,
            name,
            text_of(failure),
            repeatable=exchange.repeatable,
            blocked=blocked,
            unsafe=exchange.unsafe,
        )

    def attempt_limit(self) -> float | None:
        """Seconds that `send` may take, None without an attempt timeout."""
        return self._run.attempt_limit()

    def check(self, status: int, headers: "Mapping[str, str]") -> None:
        """Raise Refused if the reply to `send` does not go on with the body."""
        exchange, self._end = self._exchange, None
        verdict = exchange.service.verdict(exchange.judgement, status, headers)
        if verdict is not None and verdict.kind is not Kind.PERMANENT:
            raise Refused(verdict, f"HTTP {status}", reason(status))
        try:
            if self._part is None or (status == 200 and self._part.first == 0 and self._kept is not None):
                self._verify_whole(status, headers)
                self._repeated = self._kept or b""
            else:
                self._end = ranges.verify(self._part, self._received, status, headers)
                self._repeated = b""
        except Unresumable as why:
            self._why_not = str(why)
            raise Refused(TRANSIENT, f"HTTP {status}", self._why_not) from None

    @property
    def repeats(self) -> bool:
        """Whether the reply begins with bytes that the caller has, to be handed to `repeat`."""
        return bool(self._repeated)

    def repeat(self, chunk: bytes) -> bytes:
        """What `chunk` has beyond the bytes that the caller has; an empty one means that the reply ended too early.

        Raises Refused if it has others.
        """
        shared = min(len(chunk), len(self._repeated))
        if not chunk or chunk[:shared] != self._repeated[:shared]:
            self._why_not = "the second reply begins with other bytes"
            raise Refused(TRANSIENT, "Refused", self._why_not)
        self._repeated = self._repeated[shared:]
        return chunk[shared:]

    def measure(self, received: int, *, ended: bool) -> str | None:
        """What is wrong where `received` bytes are there, by the length that the last reply promised; None is right."""
        if self._end is None or received == self._end or (received < self._end and not ended):
            return None
        if received < self._end:
            return f"the rest ended after {received} of {self._end} bytes"
        self._why_not = f"the rest goes on after {self._end} bytes, of which it should be the last ones"
        return self._why_not

    def _begin(self) -> Run:
        exchange = self._exchange
        name = f"{exchange.operation} (body)"
        return Run(exchange.policy, name, exchange.runtime, exchange.runtime.monotonic(), exchange.reports)

    def _plan(self) -> str | None:
        """Set what to send next; the reason if there is nothing that could be."""
        request = self._exchange.request
        try:
            part = ranges.begin("GET", self._status, self._headers)
        except Unresumable as why:
            if self._kept is None:
                return str(why)
            if self._headers.get("content-type", "").startswith("text/event-stream"):
                return "it is a stream of events, which goes on elsewhere each time"
            self._part, self.send = None, ORIGINAL
            return None
        if part.remaining(self._received) == 0:
            return "no byte of it is missing"
        query = ""
        if part.generation is not None and not is_signed(request.target, request.headers.get("authorization", "")):
            pinned = preconditions.values(preconditions.split(request.target)[1], "generation")
            query = "" if pinned else f"generation={part.generation}"
        self._part, self.send = part, Send(part.headers(self._received), query)
        return None

    def _verify_whole(self, status: int, headers: "Mapping[str, str]") -> None:
        if status != self._status:
            raise Unresumable(f"the server answered {reason(status)} when asked again")
        for name in _SAME:
            if self._headers.get(name) != headers.get(name):
                raise Unresumable(f"the second reply has another {name} than the first")
