"""Continue the body of a GET that broke, or start over; two different responses are never mixed.

If the response has a validator, the rest is requested with `Range`. If that is impossible, or the server sends
something else than the rest, the download starts over. It requests the whole object again and skips the bytes that the
caller has already. Those bytes must be the same, by their validator or by their hash. A response that names another
object ends the download with its error. But while the caller has no byte, a new response to the whole request takes the
place of the first one, whatever it has.
"""

from hashlib import sha256

from forbear.core.decide import Reason, Stop
from forbear.core.report import text_of
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.exchange.http.options import is_signed
from forbear.exchange.http.send import ORIGINAL, Send
from forbear.http import preconditions, ranges
from forbear.http.ranges import Unresumable
from forbear.http.status import reason
from forbear.run.failure import DetailedFailure
from forbear.run.grant import Grant
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import _Hash

    from forbear.exchange.http.exchange import Exchange


_NO_RESPONSE: "tuple[int | None, Mapping[str, str]]" = (None, {})

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
                self._hash, self._kept = self._hashed(self._kept), None
        elif self._hash is not None:
            self._hash.update(chunk)

    def forget(self) -> None:
        """Forget the bytes and their hash, because the body has ended."""
        self._hash = self._kept = None

    def digest(self) -> bytes | None:
        """Return the SHA-256 hash of all bytes so far, None if the validator of the response is the proof.

        None also after `forget`.
        """
        known = self._hash if self._kept is None else self._hashed(self._kept)
        return None if known is None else known.digest()

    def _hashed(self, chunks: list[bytes]) -> "_Hash | None":
        return None if ranges.is_pinned(self._status, self._headers) else sha256(b"".join(chunks))


class Refused(Exception):
    """A response that does not continue the body; `name` and the text are for the report.

    `verdict` says whether another attempt may help.
    """

    def __init__(self, verdict: "Verdict", name: str, text: str) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.name = name


class Download:
    """The broken body of a response; the caller has seen its `status` and its `headers` (lower-case names).

    `handed_out` has the bytes that the caller received. A break starts a new run under the exchange's policy. Progress
    by ranges since the last break starts another: a long download may break often while it makes progress. Starting
    over does not, because it costs all bytes that were handed out. `is_new` is True after `check` if the response takes
    the place of the first one.
    """

    __slots__ = ("is_new", "send", "_end", "_exchange", "_handed_out", "_headers", "_latest", "_left", "_named",
                 "_part", "_received", "_run", "_sum", "_status", "_why_not", "_why_over")  # fmt: skip

    def __init__(self, exchange: "Exchange", status: int, headers: "Mapping[str, str]", handed_out: HandedOut) -> None:
        self.send = ORIGINAL
        self.is_new = False
        self._exchange = exchange
        self._status = status
        self._headers = headers
        self._handed_out = handed_out
        self._latest: tuple[int | None, Mapping[str, str]] = (status, headers)  # of the response that is being read
        self._received = 0
        self._part: ranges.DownloadRange | None = None  # the range that `send` continues; None: it requests the whole
        self._named = False  # True if `send` makes the server compare the ETag or the generation
        self._left = 0  # bytes of the response to be skipped
        self._sum: _Hash | None = None  # the hash of the skipped bytes
        self._end: int | None = None  # the body's length, as the continuing response states it
        self._run = self._begin()
        self._why_over: str | None = None  # why the rest cannot be requested
        self._why_not: str | None = None  # why neither the rest nor the whole can be requested

    def finished(self) -> None:
        """Enter the complete body as a success in the budget; notify the listeners if an attempt of this run failed."""
        self._run.succeeded()

    def end(self) -> None:
        """Count the end of an attempt in the budget, if the body is closed before its end."""
        self._run.end()

    def broken(self, error: Exception, verdict: "Verdict") -> Grant | None:
        """Return the retry that sends `send`, None to raise `error`, which broke the body.

        `verdict` is the adapter's. Progress by ranges since the last break starts a new run.
        """
        received = self._handed_out.count
        if received > self._received and self._why_over is None:
            self._run = self._begin()
        self._received = received
        return self.failed(error, error, verdict)

    def failed(self, error: Exception, failure: Exception, verdict: "Verdict") -> Grant | None:
        """Return the retry after `send` failed with `failure`, None to raise `error` (the break).

        `verdict` is the adapter's on `failure`; a Refused brings its own.
        """
        exchange = self._exchange
        if isinstance(failure, Refused):
            name, verdict = failure.name, failure.verdict
        else:
            name, verdict = type(failure).__qualname__, exchange.verdict_of(failure, verdict)
        if self._why_not is None:
            self._why_not = self._plan()
        details, self._latest = exchange.details(*self._latest), _NO_RESPONSE
        blocked = None if self._why_not is None else Stop(Reason.BODY, f"the rest cannot be requested: {self._why_not}")
        unsafe = None if exchange.repeatable else exchange.unsafe
        return self._run.after(
            DetailedFailure(
                verdict, error, name=name, text=text_of(failure), unsafe=unsafe, blocked=blocked, details=details
            )
        )

    def attempt_limit(self) -> float | None:
        """Return the seconds that `send` may take, None without an attempt timeout."""
        return self._run.attempt_limit()

    def check(self, status: int, headers: "Mapping[str, str]") -> bool:
        """Return whether to read the response to `send`: False if it says that the body was complete already.

        Raises Refused if the response does not continue the body, as a rest or from its start. `headers` has lower-case
        names.
        """
        exchange = self._exchange
        self._latest = (status, headers)
        self._end, self._left, self._sum, self.is_new = None, 0, None, False
        verdict = exchange.service.verdict(exchange.judgement, status, headers)
        if verdict is not None and verdict.kind is not Kind.PERMANENT:
            raise Refused(verdict, f"HTTP {status}", reason(status))
        part = self._part
        is_whole = status == 200 and self._status == 200 and "content-range" not in headers
        try:
            if part is None or (is_whole and part.first == 0):
                if self._is_free:
                    self._begin_anew(status, headers)
                else:
                    self._start_over(status, headers)
                self._why_over = self._why_over or "the server does not serve ranges"
            else:
                self._end = ranges.verify(part, self._received, status, headers, named=self._named)
        except Unresumable as why:
            is_other = status in (200, 206, 416) or bool(self.send.query)  # not what the request itself would get
            self._refuse(str(why), final=why.final and not (self._is_free and is_other))
            raise Refused(TRANSIENT, f"HTTP {status}", str(why)) from None
        return status in (200, 206)

    @property
    def skips(self) -> bool:
        """True while `skip` needs more bytes of the response."""
        return self._left > 0

    def skip(self, chunk: bytes) -> bytes:
        """Return the part of `chunk` that the caller has not received; an empty `chunk` means that the response ended.

        Raises Refused if the skipped bytes differ, if the response ended before all of them, or if no time is left.
        """
        timeout, run = self._exchange.policy.limits.timeout, self._run
        if timeout is not None and run.runtime.monotonic() - run.started >= timeout:
            raise Refused(TRANSIENT, "TimeoutError", "the bytes received before did not arrive again in time")
        shared = min(len(chunk), self._left)
        self._left -= shared
        if self._sum is not None:
            self._sum.update(memoryview(chunk)[:shared])
        if not chunk or (self._sum is not None and not self._left and self._sum.digest() != self._handed_out.digest()):
            self._why_not = "the second response begins with other bytes"
            raise Refused(TRANSIENT, "Refused", self._why_not)
        return chunk[shared:]

    def measure(self, received: int, *, ended: bool) -> str | None:
        """Return the reason why `received` bytes contradict the length in the last response, None if they agree.

        Fewer bytes contradict it only if the body has `ended`. Without a stated length all numbers agree.
        """
        if self._end is None or received == self._end or (received < self._end and not ended):
            return None
        if received < self._end:
            return f"the rest ended after {received} of {self._end} bytes"
        self._why_not = f"the rest goes on after {self._end} bytes, of which it should be the last ones"
        return self._why_not

    def _begin(self) -> Run:
        exchange = self._exchange
        name = f"{exchange.operation} (body)"
        now = exchange.runtime.monotonic()
        return Run(
            exchange.policy,
            name,
            exchange.runtime,
            now,
            exchange.reports,
            awaits=exchange.awaits,
            subject=exchange.request,
            spending=exchange.new_spending(),
        )

    def _refuse(self, why: str, *, final: bool) -> None:
        """Record why a response cannot be used: start over next, unless that was done already or is of no use.

        It is of no use if the reason is `final`. Then nothing more is sent.
        """
        if self._part is None or final:
            self._why_not = why
        else:
            self._why_over = why

    def _plan(self) -> str | None:
        """Set `send` to a request for the rest, or else for the whole; return the reason if neither is possible."""
        stuck = self._exchange.stuck
        if stuck is not None:
            return stuck
        if self._why_over is None:
            try:
                part = ranges.download_range("GET", self._status, self._headers, self._range)
            except Unresumable as why:
                self._why_over = str(why)
            else:
                return self._ask_for_rest(part)
        begun = self._received and not self._is_free
        if begun and self._headers.get("content-type", "").startswith("text/event-stream"):
            return "it is a stream of events, which continues elsewhere each time"
        self._part, self._named, self.send = None, False, ORIGINAL
        return None

    def _ask_for_rest(self, part: ranges.DownloadRange) -> str | None:
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
        """Prepare to read a response to the caller's own request from its start and to skip the bytes received before.

        Raises Unresumable if the response cannot have the same bytes as the first.
        """
        self._end = ranges.verify_again((self._status, self._headers), (status, headers), self._range)
        self._left = self._received
        self._sum = None if self._handed_out.digest() is None else sha256()

    def _begin_anew(self, status: int, headers: "Mapping[str, str]") -> None:
        """Prepare to read a response from its start in place of the first one, of which the caller has no byte.

        Raises Unresumable if its status does not fit, or if it would have to be decoded in another way.
        """
        if status != self._status:
            ranges.verify_again((self._status, self._headers), (status, headers), self._range)
        self._end = ranges.verify_anew(self._headers, headers)
        self.is_new, self._headers, self._received = True, headers, 0
        self._handed_out.restart(self._status, headers)

    @property
    def _is_free(self) -> bool:
        """True if the caller has no byte, and gets none of what another response may have to fit.

        A caller who requested a range may join it to others, by the headers of the first response.
        """
        handed_out = self._handed_out
        return handed_out.held or (handed_out.count == 0 and not self._range)

    @property
    def _range(self) -> str:
        return self._exchange.request.headers.get("range", "")
