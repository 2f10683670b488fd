"""Download: the body of a GET that broke halfway is continued or not at all; two responses are never mixed.

Where the response says of which object it is, the rest is asked for with `Range`. Where that cannot be, or brings
something else, the download starts over: the whole is asked for again, and the bytes that were handed out are skipped.
They must be the same, by their validator or by their hash. It sends nothing itself.
"""

from hashlib import sha256

from forbear.core.decide import Reason, Stop
from forbear.core.report import text_of
from forbear.core.verdict import TRANSIENT, Kind
from forbear.exchange.http.options import is_signed
from forbear.exchange.http.send import ORIGINAL, Send
from forbear.http import preconditions, ranges
from forbear.http.ranges import Unresumable
from forbear.http.status import reason
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import _Hash

    from forbear.core.verdict import Verdict
    from forbear.exchange.http.exchange import Exchange


KEPT = 1024 * 1024
"""How much of a body is kept before it is hashed, in bytes: most bodies are shorter and never break."""


class HandedOut:
    """Count the bytes of a body that were handed out, and remember what proves that other bytes are the same.

    `status` and `headers` (lower-case names) are those of its response. Of a long body only a hash is remembered, and
    nothing where the validator of the response is the proof.
    """

    __slots__ = ("count", "_hash", "_headers", "_kept", "_status")

    def __init__(self, status: int, headers: "Mapping[str, str]") -> None:
        self.count = 0
        self._status = status
        self._headers = headers
        self._kept: list[bytes] | None = []
        self._hash: _Hash | None = None

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self.count += len(chunk)
        if self._kept is not None:
            self._kept.append(chunk)
            if self.count > KEPT:
                self._hash, self._kept = self._hashed(self._kept), None
        elif self._hash is not None:
            self._hash.update(chunk)

    def forget(self) -> None:
        """Forget the bytes and their hash: the body has ended."""
        self._hash = self._kept = None

    def digest(self) -> bytes | None:
        """Return the hash of all bytes so far, None where the validator of the response is the proof."""
        known = self._hash if self._kept is None else self._hashed(self._kept)
        return None if known is None else known.digest()

    def _hashed(self, chunks: list[bytes]) -> "_Hash | None":
        return None if ranges.is_pinned(self._status, self._headers) else sha256(b"".join(chunks))


class Refused(Exception):
    """A response that does not continue the body; `name` and the text are for the report."""

    def __init__(self, verdict: "Verdict", name: str, text: str) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.name = name


class Download:
    """The broken body of a response, whose `status` and `headers` (lower-case names) the caller has seen.

    `handed_out` is what the caller has of it. A break starts a run of its own under the exchange's policy. Progress by
    ranges since the last break starts it anew: a long download may break often, as long as it gets on. Starting over
    does not, since each time costs all that was handed out.
    """

    __slots__ = ("send", "_end", "_exchange", "_handed_out", "_headers", "_left", "_named", "_part", "_received",
                 "_run", "_sum", "_status", "_why_not", "_why_over")  # fmt: skip

    def __init__(self, exchange: "Exchange", status: int, headers: "Mapping[str, str]", handed_out: HandedOut) -> None:
        self.send = ORIGINAL
        self._exchange = exchange
        self._status = status
        self._headers = headers
        self._handed_out = handed_out
        self._received = 0
        self._part: ranges.Part | None = None  # what `send` asks for the rest of, None if for the whole
        self._named = False  # `send` has the server compare the ETag or the generation
        self._left = 0  # bytes of the response to be skipped
        self._sum: _Hash | None = None  # of the bytes that were skipped
        self._end: int | None = None  # how long the body is, by the response that it is continued in
        self._run = self._begin()
        self._why_over: str | None = None  # why the rest cannot be asked for
        self._why_not: str | None = None  # why nothing can

    def finished(self) -> None:
        """Tell the policy's listener and budget that the body is whole all the same."""
        self._run.succeeded()

    def broken(self, error: Exception, verdict: "Verdict") -> float | None:
        """Return the seconds to wait before `send`, None to raise `error`; `verdict` is the adapter's on it."""
        received = self._handed_out.count
        if received > self._received and self._why_over is None:
            self._run = self._begin()
        self._received = received
        return self.failed(error, error, verdict)

    def failed(self, error: Exception, failure: Exception, verdict: "Verdict") -> float | None:
        """Return the seconds to wait after a `send` that ended with `failure`, None to raise `error`, the break."""
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
        """Return the seconds that `send` may take, None without an attempt timeout."""
        return self._run.attempt_limit()

    def check(self, status: int, headers: "Mapping[str, str]") -> bool:
        """Return whether to read the response to `send`: not if it says that the body was whole already.

        Raises Refused if it does not continue the body.
        """
        exchange = self._exchange
        self._end, self._left, self._sum = None, 0, None
        verdict = exchange.service.verdict(exchange.judgement, status, headers)
        if verdict is not None and verdict.kind is not Kind.PERMANENT:
            raise Refused(verdict, f"HTTP {status}", reason(status))
        part = self._part
        is_whole = status == 200 and self._status == 200 and "content-range" not in headers
        try:
            if part is None or (is_whole and part.first == 0):
                self._start_over(status, headers)
                self._why_over = self._why_over or "the server does not serve ranges"
            else:
                self._end = ranges.verify(part, self._received, status, headers, named=self._named)
        except Unresumable as why:
            self._refuse(str(why), final=why.final)
            raise Refused(TRANSIENT, f"HTTP {status}", str(why)) from None
        return status in (200, 206)

    @property
    def skips(self) -> bool:
        """Return whether `skip` must get more bytes of the response."""
        return self._left > 0

    def skip(self, chunk: bytes) -> bytes:
        """Return what `chunk` has beyond the bytes that the caller has; an empty `chunk` means that the response ended.

        Raises Refused if they are other bytes, or if there is no time left.
        """
        timeout, run = self._exchange.policy.limits.timeout, self._run
        if timeout is not None and run.runtime.monotonic() - run.started >= timeout:
            raise Refused(TRANSIENT, "TimeoutError", "the bytes that were handed out did not come again in time")
        shared = min(len(chunk), self._left)
        self._left -= shared
        if self._sum is not None:
            self._sum.update(memoryview(chunk)[:shared])
        if not chunk or (self._sum is not None and not self._left and self._sum.digest() != self._handed_out.digest()):
            self._why_not = "the second response begins with other bytes"
            raise Refused(TRANSIENT, "Refused", self._why_not)
        return chunk[shared:]

    def measure(self, received: int, *, ended: bool) -> str | None:
        """Return why `received` bytes contradict the length that the last response promised; None if they agree."""
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

    def _refuse(self, why: str, *, final: bool) -> None:
        """Note why a response is of no use: start over next, unless that was done or cannot help."""
        if self._part is None or final:
            self._why_not = why
        else:
            self._why_over = why

    def _plan(self) -> str | None:
        """Set what to send next; return the reason if there is nothing that could be."""
        stuck = self._exchange.stuck
        if stuck is not None:
            return stuck
        if self._why_over is None:
            try:
                part = ranges.begin("GET", self._status, self._headers, self._range)
            except Unresumable as why:
                self._why_over = str(why)
            else:
                return self._ask_for_rest(part)
        if self._received and self._headers.get("content-type", "").startswith("text/event-stream"):
            return "it is a stream of events, which goes on elsewhere each time"
        self._part, self._named, self.send = None, False, ORIGINAL
        return None

    def _ask_for_rest(self, part: ranges.Part) -> str | None:
        request = self._exchange.request
        if part.remaining(self._received) == 0:
            return "no byte of it is missing"
        query = ""
        pinned = bool(preconditions.values(preconditions.split(request.target)[1], "generation"))
        if part.generation is not None and not is_signed(request.target, request.headers.get("authorization", "")):
            query = "" if pinned else f"generation={part.generation}"
        self._part, self.send = part, Send(part.headers(self._received), query)
        self._named = part.is_conditional or (part.generation is not None and (pinned or query != ""))
        return None

    def _start_over(self, status: int, headers: "Mapping[str, str]") -> None:
        """Take a response to the caller's own request for one that is read from its beginning."""
        self._end = ranges.verify_again((self._status, self._headers), (status, headers), self._range)
        self._left = self._received
        self._sum = None if self._handed_out.digest() is None else sha256()

    @property
    def _range(self) -> str:
        return self._exchange.request.headers.get("range", "")
