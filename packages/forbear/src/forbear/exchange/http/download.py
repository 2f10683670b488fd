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
from forbear.exchange.http.responses import HandedOut
from forbear.exchange.http.send import ORIGINAL, Variation
from forbear.http import preconditions, ranges
from forbear.http.ranges import Unresumable
from forbear.http.request import is_signed
from forbear.http.status import reason
from forbear.run.failure import DetailedFailure
from forbear.run.grant import Grant
from forbear.run.state import Run
from forbear.waits import add_wait, find_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import _Hash

    from forbear.exchange.http.exchange import Exchange


_NO_RESPONSE: "tuple[int | None, Mapping[str, str]]" = (None, {})


class Refused(Exception):
    """A response that does not continue the body. `verdict` says whether another attempt may help."""

    def __init__(self, verdict: "Verdict", name: str, text: str) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.name = name


class Download:
    """The broken body of a response; the caller has seen its `status` and its `headers` (lower-case names).

    `handed_out` has the bytes that the caller received. A break starts a new run under the exchange's policy. Progress
    by ranges since the last break starts another: a long download may break often while it makes progress. Starting
    over does not, because it costs all bytes that were handed out. `run` is the latest of them. `is_new` is True after
    `check` if the response takes the place of the first one.
    """

    __slots__ = ("is_new", "run", "variation", "_because", "_exchange", "_handed_out", "_headers", "_is_pinned",
                 "_latest_response", "_received", "_rest", "_skipped_hash", "_starts_over", "_total", "_status",
                 "_to_skip")  # fmt: skip

    def __init__(self, exchange: "Exchange", status: int, headers: "Mapping[str, str]", handed_out: HandedOut) -> None:
        self.variation = ORIGINAL
        self.is_new = False
        self._exchange = exchange
        self._status = status
        self._headers = headers
        self._handed_out = handed_out
        self._starts_over = False  # True once the rest cannot be requested
        self._because: str | None = None  # the reason why nothing is requested any more
        self._received = 0
        self._rest: ranges.DownloadRange | None = None  # that `variation` requests; None: it requests the whole
        self._is_pinned = False  # True if `variation` makes the server compare the ETag or the generation
        self._latest_response: tuple[int | None, Mapping[str, str]] = (status, headers)  # the one being read
        self._total: int | None = None  # of the whole body, as the continuing response says
        self._to_skip = 0  # bytes of the response that the caller has already
        self._skipped_hash: _Hash | None = None
        self.run = self._begin()

    def broken(self, error: Exception, verdict: "Verdict") -> Grant | None:
        """Return the retry that sends `variation`, None to raise `error`, which broke the body.

        `verdict` is the adapter's. Progress by ranges since the last break starts a new run.
        """
        received = self._handed_out.count
        if received > self._received and not self._starts_over and self._because is None:
            self.run = self._begin()
        self._received = received
        return self.failed(error, error, verdict)

    def failed(self, error: Exception, failure: Exception, verdict: "Verdict") -> Grant | None:
        """Return the retry after `variation` failed with `failure`, None to raise `error` (the break).

        `verdict` is the adapter's on `failure`; a Refused brings its own.
        """
        exchange = self._exchange
        if isinstance(failure, Refused):
            name, verdict = failure.name, failure.verdict
        else:
            name, verdict = type(failure).__qualname__, exchange.verdict_of(failure, verdict)
        if self._because is None:
            self._plan()
        details, self._latest_response = exchange.details(*self._latest_response), _NO_RESPONSE
        blocked = None
        if self._because is not None:
            blocked = Stop(Reason.BODY, f"the rest cannot be requested: {self._because}")
        unsafe = None if exchange.repeatable else exchange.unsafe
        return self.run.after(
            DetailedFailure(
                verdict, error, name=name, text=text_of(failure), unsafe=unsafe, blocked=blocked, details=details
            )
        )

    def check(self, status: int, headers: "Mapping[str, str]") -> bool:
        """Return whether to read the response to `variation`; False if it says that the body was complete already.

        Raises Refused if it does not continue the body, as a rest or from its start. `headers` has lower-case names.
        """
        exchange = self._exchange
        self._latest_response = (status, headers)
        self._total, self._to_skip, self._skipped_hash, self.is_new = None, 0, None, False
        verdict = exchange.service.verdict(exchange.judgement, status, headers)
        if verdict is not None and verdict.kind is not Kind.PERMANENT:
            wait = find_wait(headers, status, host=exchange.request.host, now=exchange.runtime.now)
            raise Refused(add_wait(verdict, wait), f"HTTP {status}", reason(status))
        rest = self._rest
        is_whole = status == 200 and self._status == 200 and "content-range" not in headers
        try:
            if rest is None or (is_whole and rest.first == 0):
                if self._is_free:
                    self._begin_anew(status, headers)
                else:
                    self._start_over(status, headers)
                self._starts_over = True  # the server does not serve ranges
            else:
                self._total = ranges.verify(rest, self._received, status, headers, named=self._is_pinned)
        except Unresumable as why:
            is_other = status in (200, 206, 416) or bool(self.variation.query)  # not what the request itself would get
            if self._rest is None or (why.final and not (self._is_free and is_other)):
                self._give_up(str(why))
            else:
                self._starts_over = True
            raise Refused(TRANSIENT, f"HTTP {status}", str(why)) from None
        return status in (200, 206)

    @property
    def skips(self) -> bool:
        return self._to_skip > 0

    def skip(self, chunk: bytes) -> bytes:
        """Return the part of `chunk` that the caller has not received; an empty `chunk` means that the response ended.

        Raises Refused if the skipped bytes differ, if the response ended before all of them, or if no time is left.
        """
        timeout, run = self._exchange.policy.limits.timeout, self.run
        if timeout is not None and run.runtime.monotonic() - run.started >= timeout:
            raise Refused(TRANSIENT, "TimeoutError", "the bytes received before did not arrive again in time")
        shared = min(len(chunk), self._to_skip)
        self._to_skip -= shared
        differs = False
        if self._skipped_hash is not None:
            self._skipped_hash.update(memoryview(chunk)[:shared])
            differs = not self._to_skip and self._skipped_hash.digest() != self._handed_out.digest()
        if differs or not chunk:
            raise Refused(TRANSIENT, "Refused", self._give_up("the second response begins with other bytes"))
        return chunk[shared:]

    def measure(self, received: int, *, ended: bool) -> str | None:
        """Return why `received` bytes contradict the length in the last response, None if they do not."""
        if self._total is None or received == self._total or (received < self._total and not ended):
            return None
        if received < self._total:
            return f"the rest ended after {received} of {self._total} bytes"
        return self._give_up(f"the rest goes on after {self._total} bytes, of which it should be the last ones")

    def _begin(self) -> Run:
        exchange = self._exchange
        return exchange.new_run(f"{exchange.operation} (body)", exchange.runtime.monotonic(), exchange.new_spending())

    def _give_up(self, why: str) -> str:
        """Request nothing more, and return the reason."""
        self._because = why
        return why

    def _plan(self) -> None:
        """Set `variation` to a request for the rest, or else for the whole; give up if neither is possible."""
        stuck = self._exchange.stuck
        if stuck is not None:
            self._give_up(stuck)
            return
        if not self._starts_over:
            try:
                rest = ranges.download_range(self._status, self._headers, self._requested_range)
            except Unresumable:
                self._starts_over = True
            else:
                self._ask_for_rest(rest)
                return
        begun = self._received and not self._is_free
        if begun and self._headers.get("content-type", "").startswith("text/event-stream"):
            self._give_up("it is a stream of events, which continues elsewhere each time")
            return
        self._rest, self._is_pinned, self.variation = None, False, ORIGINAL

    def _ask_for_rest(self, rest: ranges.DownloadRange) -> None:
        request = self._exchange.request
        if rest.remaining(self._received) == 0:
            self._give_up("no byte of it is missing")
            return
        query = ""
        has_generation = bool(preconditions.values(preconditions.split(request.target)[1], "generation"))
        if rest.generation is not None and not is_signed(request.target, request.headers.get("authorization", "")):
            query = "" if has_generation else f"generation={rest.generation}"
        self._rest, self.variation = rest, Variation(rest.headers(self._received), query)
        self._is_pinned = rest.is_conditional or (rest.generation is not None and (has_generation or query != ""))

    def _start_over(self, status: int, headers: "Mapping[str, str]") -> None:
        """Prepare to read a response to the caller's own request from its start and to skip what was received."""
        self._total = ranges.verify_again((self._status, self._headers), (status, headers), self._requested_range)
        self._to_skip = self._received
        self._skipped_hash = None if self._handed_out.digest() is None else sha256()

    def _begin_anew(self, status: int, headers: "Mapping[str, str]") -> None:
        """Prepare to read a response from its start in place of the first one, of which the caller has no byte.

        Raises Unresumable if its status does not fit, or if it would have to be decoded in another way.
        """
        if status != self._status:
            ranges.verify_again((self._status, self._headers), (status, headers), self._requested_range)
        self._total = ranges.verify_anew(self._headers, headers)
        self.is_new, self._headers, self._received = True, headers, 0
        self._handed_out.restart(self._status, headers)

    @property
    def _is_free(self) -> bool:
        """True if the caller has no byte, and no header of a range, to which another response would have to fit."""
        handed_out = self._handed_out
        return handed_out.held or (handed_out.count == 0 and not self._requested_range)

    @property
    def _requested_range(self) -> str:
        return self._exchange.request.headers.get("range", "")
