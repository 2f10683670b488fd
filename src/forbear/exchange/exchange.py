"""Exchange: what a failed attempt of one HTTP request means, and what to send after it. It sends nothing itself."""

from forbear.core.decide import Reason, Stop
from forbear.core.verdict import Kind, Verdict
from forbear.exchange.chunk import Chunk
from forbear.exchange.send import ORIGINAL
from forbear.http.status import reason
from forbear.run.runtime import current
from forbear.run.state import Run, reports_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forbear.core.report import Report
    from forbear.exchange.body import Body
    from forbear.http.request import Judgement, Request, Service
    from forbear.policy import Policy
    from forbear.run.runtime import Runtime


class Exchange:
    """One request on its way through as many attempts as it takes.

    The adapter sends `send`, tells how it went (`failed` or `answered`), waits for the seconds it gets back and sends
    again; None means that the error or the reply is the caller's. The request is classified on the first failure, not
    before.
    """

    __slots__ = ("policy", "service", "send", "runtime", "_describe", "_body", "_keyed", "_started", "_reports",
                 "_request", "_run", "_judgement", "_chunk", "_asking")  # fmt: skip

    def __init__(
        self,
        policy: "Policy",
        service: "Service",
        describe: "Callable[[], Request]",
        body: "Body",
        *,
        keyed: bool = False,
    ) -> None:
        self.policy = policy
        self.service = service
        self.send = ORIGINAL
        self.runtime: Runtime = current.get()
        self._describe = describe
        self._body = body
        self._keyed = keyed  # the API drops duplicates by the token that this request carries
        self._started, self._reports = self.runtime.monotonic(), reports_made[0]
        self._request: Request | None = None
        self._run: Run | None = None
        self._judgement: Judgement | None = None
        self._chunk: Chunk | None = None
        self._asking = False

    @property
    def report(self) -> "Report | None":
        """The report, once the exchange was given up."""
        return None if self._run is None else self._run.report

    def failed(self, error: Exception, verdict: Verdict) -> float | None:
        """Seconds to wait after an attempt that ended with `error`, None to let it out; `verdict` is the adapter's."""
        if self.policy.service is None:  # a policy for errors in general, whose `on` has a say
            asked = self.policy.judge_error(error)
            if asked.kind is Kind.TRANSIENT and verdict.kind is Kind.NOT_EXECUTED:
                asked = verdict.replace(delay=asked.delay)
            verdict = asked
        return self._after(verdict, error, type(error).__qualname__, str(error))

    def answered(self, status: int, headers: "Mapping[str, str]", response: object) -> float | None:
        """Seconds to wait after a reply, None to hand it out; `response` is the client's own, for `on_result`."""
        policy = self.policy
        verdict = None
        if status >= 400:
            verdict = self.service.verdict(self.judgement, status, headers)
        elif self._asking:
            rest = self._chunk.rest(status, headers) if self._chunk else None
            if rest is not None and self._body.why_not_again() is None:
                self._asking = False
                self.send = rest
                return 0.0
        if verdict is None and policy.judges_values:
            verdict = policy.judge_value(response)
        if verdict is not None:
            return self._after(verdict, None, f"HTTP {status}", reason(status), status, response)
        if self._run is not None:
            self._run.succeeded()
        elif policy.budget is not None:
            policy.budget.put(retried=False)
        return None

    def attempt_limit(self) -> float | None:
        """Seconds that the attempt which starts now may take, None without an attempt timeout."""
        return None if self.policy.attempt_timeout is None else self._begun().attempt_limit()

    @property
    def request(self) -> "Request":
        """The caller's request, as far as it matters."""
        if self._request is None:
            self._request = self._describe()
        return self._request

    @property
    def judgement(self) -> "Judgement":
        """What the service knows of the request."""
        if self._judgement is None:
            self._judgement = self.service.classify(self.request)
            if self._judgement.session and not self._judgement.repeatable:
                self._chunk = Chunk.of(self.request)
        return self._judgement

    @property
    def operation(self) -> str:
        """The name for reports and events."""
        return self.policy.name or self.judgement.operation or f"{self.request.method} {self.request.host}"

    def _begun(self) -> Run:
        if self._run is None:
            self._run = Run(self.policy, self.operation, self.runtime, self._started, self._reports)
        return self._run

    def _after(
        self,
        verdict: Verdict,
        error: Exception | None,
        name: str,
        text: str,
        status: int = 0,
        response: object = None,
    ) -> float | None:
        run = self._begun()
        judgement = self.judgement
        body = None if self._chunk else self._body.why_not_again()
        delay = run.after(
            verdict,
            error,
            name,
            text,
            repeatable=judgement.repeatable or self._chunk is not None or (self._keyed and not judgement.refused),
            maybe_done=status in judgement.maybe_done,
            blocked=None if body is None else Stop(Reason.BODY, body),
            unsafe=_why_unsafe(judgement),
            response=response,
        )
        if delay is not None and self._chunk is not None:
            self._asking = True
            self.send = self._chunk.question()
        return delay


def _why_unsafe(judgement: "Judgement") -> str:
    """Why a request may not be repeated, and the cure if there is one."""
    if judgement.refused is not None:
        return judgement.refused
    name = judgement.operation or "the request"
    if judgement.conditions:
        return f"{name} may have been executed; only with {' or '.join(judgement.conditions)} may it be repeated"
    return f"{name} may have been executed and must not be executed twice"
