"""The state of one HTTP request: after each failed attempt it decides whether, when and what to send next."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

from forbear.core.attempt import Details
from forbear.core.decide import Reason, Stop
from forbear.core.report import Report, attach
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.exchange.call_state import Start, apply_rules, drop_proof, first_limit, is_only_of_user, with_proof
from forbear.exchange.http.request_state import RequestState
from forbear.exchange.http.send import ORIGINAL, Body
from forbear.exchange.interrupt import is_interrupt
from forbear.http.api import IN_USE, IdempotencyKey
from forbear.http.patterns import is_for_its_host
from forbear.http.request import Request, is_resumable, request_ids
from forbear.http.status import reason
from forbear.http.vouch import NO_VOUCH, Vouch
from forbear.policy import Policy
from forbear.run.answers import Broken
from forbear.run.budget import HostBudgets
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure
from forbear.run.grant import Grant
from forbear.run.spending import Spending, admit, succeeded
from forbear.run.state import Run
from forbear.services.rfc9110 import RFC9110
from forbear.waits import add_wait, find_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.http.request import HttpService


class Exchange(RequestState):
    """One request through its attempts.

    The adapter sends `variation`, reports the result (`failed` or `responded`), asks the grant, waits, and sends
    again; None means that the caller gets the error or the response. `is_new_key` is True if forbear made the value of
    the key for this request, and `settles` if the adapter has an option `settle` that is not used.

    A chunk of a resumable upload gets the policy's full limits at its first failure, and again whenever its session has
    received more bytes. The time that sending takes says nothing about the outage.
    """

    __slots__ = ("awaits", "reports", "run", "runtime", "started", "variation",
                 "_body", "_is_new_key", "_settles", "_spending", "_unexecuted")  # fmt: skip

    run: Run | None
    """The run that counts the attempts, None before the first failure."""

    def __init__(
        self,
        policy: Policy,
        service: "HttpService",
        describe: Callable[[], Request],
        body: Body,
        start: Start,
        *,
        key: IdempotencyKey | None = None,
        is_new_key: bool = False,
        vouch: Vouch = NO_VOUCH,
        settles: bool = False,
    ) -> None:
        super().__init__(policy, service, describe, key, vouch)
        self.variation = ORIGINAL
        self.runtime = start.runtime
        self.reports = start.reports
        self.awaits = start.awaits
        self.started = start.time
        self._body = body
        self._is_new_key = is_new_key
        self._settles = settles
        self.run = None
        self._spending: Spending | None = None
        self._unexecuted = False

    @property
    def report(self) -> Report | None:
        return None if self.run is None else self.run.report

    def begin(self) -> None:
        """Count the first attempt in the policy's budget, or that of the host; raise Throttled if it refuses."""
        if self.policy.budget is not None:
            self._spending = spending = self.new_spending()
            if spending is not None:
                admit(spending, self.runtime, self.begin_run)

    def end(self) -> None:
        if self._spending is not None:
            self._spending.end()

    def new_spending(self) -> Spending | None:
        """Return the part of a new run in the policy's budget, None without a budget."""
        budget = self.policy.budget
        if isinstance(budget, HostBudgets):
            budget = budget.of(self.request.authority, "" if self.service == RFC9110 else self.service.name)
        return None if budget is None else Spending(budget)

    def failed(
        self,
        error: Exception,
        verdict: Verdict,
        done: int | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Grant | None:
        """Return the retry after an attempt that ended with `error`, None to raise it.

        `verdict` is the adapter's. `done` is the status of a successful response whose body broke, None without one,
        and `headers` are its headers. With it, or if the caller's own body stream raised, the request counts as begun.
        """
        is_begun = done is not None or self._body.failed
        proven = drop_proof(verdict) if is_begun else verdict
        try:
            verdict = self.verdict_of(error, verdict)
            if is_begun:
                verdict = drop_proof(verdict)
                if self._body.failed and verdict.kind is Kind.PERMANENT and not self.repeatable:
                    verdict = TRANSIENT  # the server may have all of the body that it expected
            by_word = is_only_of_user(verdict, proven)
            details = self.details(done, headers)
            if verdict.kind is Kind.PERMANENT and not self.repeatable and is_interrupt(error):
                self._leave_in_doubt(error)
            return self._decide(DetailedFailure(verdict, error, details=details, vouched=by_word), done=done)
        except Exception as broken:  # of the user's own `safe`
            self._judge_by_table()
            kind = Kind.NOT_EXECUTED if proven.kind is Kind.NOT_EXECUTED else Kind.PERMANENT
            return self._decide(DetailedFailure(Broken(broken, kind), error), done=done)

    def verdict_of(self, error: Exception, verdict: Verdict) -> Verdict:
        """Return the verdict on an error: the adapter's `verdict` under a policy of a service, else that of the policy.

        If the policy calls the error transient and `verdict` is NOT_EXECUTED, the result is NOT_EXECUTED. If only the
        policy calls it NOT_EXECUTED, that holds for no batch and no request of an upload session. What a signal handler
        raised is PERMANENT: it is meant for the caller, and says nothing about the server.
        """
        if is_interrupt(error):
            return PERMANENT
        if self.policy.service is not None:
            return verdict
        ruled = self.policy.verdict_of_error(error)
        if is_only_of_user(ruled, verdict):
            return apply_rules(ruled, self.judgement)
        return with_proof(ruled, verdict)

    def responded(
        self, status: int, headers: Mapping[str, str], response: object, body: Callable[[], bytes] | None = None
    ) -> Grant | None:
        """Return the retry that sends `variation` after a response, None to give the response to the caller.

        A status of 400 or more is judged by the service, unless the user knows better. On any other, `on_result` judges
        the client's `response`. `body` returns the body of a failed response, None if it was not read.
        After a status query that shows missing bytes of the chunk, the rest is sent at once.
        """
        try:
            return self._judge_response(status, headers, response, body)
        except Exception as broken:
            self._leave_in_doubt(broken)
            raise

    def _judge_response(
        self, status: int, headers: Mapping[str, str], response: object, body: Callable[[], bytes] | None
    ) -> Grant | None:
        policy = self.policy
        verdict, by_word = None, False
        if status >= 400:
            verdict, by_word = self._judge_failed(status, headers, response, body)
        elif self._session is not None and self._body.why_not_again() is None:
            rest = self._session.responded(status, headers)
            if rest is not None:
                self.variation = rest
                return Grant(self.runtime, 0.0)
        if status < 400 and policy.checks_values:
            verdict = policy.verdict_of_value(response)
            if verdict is not None:
                wait = find_wait(headers, status, host=self.request.host, now=self.runtime.now)
                verdict = add_wait(apply_rules(verdict, self.judgement), wait)
                by_word = verdict.kind is Kind.NOT_EXECUTED
        if verdict is not None:
            failure = DetailedFailure(verdict, response=response, name=f"HTTP {status}", text=reason(status))
            failure.maybe_done = status in self.judgement.maybe_done
            if failure.maybe_done and self._settles:
                from forbear.services.cloud_storage.settling import HINT, can_settle  # only after a conflict

                failure.hint = HINT if can_settle(self.judgement) else ""
            failure.vouched = by_word
            failure.details = self.details(status, headers)
            return self._decide(failure)
        succeeded(self.run, policy, self._spending)
        return None

    def broken(self, error: Exception, status: int, headers: Mapping[str, str]) -> None:
        """Attach a report to an error raised while the caller reads the body: no outer policy then repeats a write.

        `status` and `headers` are those of the response. The report is the request's own if the request was
        given up. An error gets none if the request may always be repeated.
        """
        if self.report is not None:
            attach(error, self.report)
            return
        judgement = self.judgement
        if self._may_repeat and ((judgement.safety is Safety.ALWAYS and judgement.repeatable) or self.vouched):
            return  # sending the request again is harmless
        run = self.run or self.begin_run()
        run.in_doubt = True
        unsafe, details = self._describe_break(status), self.details(status, headers)
        run.after(DetailedFailure(TRANSIENT, error, unsafe=unsafe, maybe_done=status < 400, details=details))

    def cut_off(self, error: BaseException) -> None:
        """Attach a report to `error`, a cancellation or interrupt, unless repeating the request is harmless."""
        with suppress(Exception):  # of the user's own `safe`
            _ = self.judgement
        self._leave_in_doubt(error)

    def _leave_in_doubt(self, error: BaseException) -> None:
        """Attach a report to `error`, which ended an attempt, unless repeating the request is harmless."""
        self._judge_by_table()
        if not self.repeatable:
            number = 1 if self.run is None else self.run.attempt
            leave_in_doubt(error, self.operation, self.unsafe, self.runtime, self.started, self.request, number)

    def details(self, status: int | None, headers: Mapping[str, str]) -> Details:
        """Return what a support case needs of an attempt that failed now: the time, the status and the request ids."""
        ids = request_ids(headers, resumable=is_resumable(self.request)) if headers else ()
        return self.runtime.now(), status, ids

    def attempt_limit(self) -> float | None:
        """Return the seconds that the attempt may take which starts now, None without an attempt timeout."""
        return first_limit(self.policy) if self.run is None else self.run.attempt_limit()

    @property
    def stuck(self) -> str | None:
        """The reason why the request's own body cannot be sent again, None if it can."""
        return self._body.why_not_again()

    def _judge_failed(
        self, status: int, headers: Mapping[str, str], response: object, body: Callable[[], bytes] | None
    ) -> "tuple[Verdict | None, bool]":
        """Return the verdict on a failed response, with the wait that it asks for.

        The second value says whether it is NOT_EXECUTED by the user's word alone. The verdict of `on_result` counts
        first, then what the API is known to mean, then the service. A 409 may say that the key of this request is in
        use, and is then TRANSIENT. A new key is in use only after an attempt whose outcome is unknown.
        """
        from forbear.apis import find_api  # only after a failure

        judgement, request = self.judgement, self.request
        own = self._vouch.find_own_api(request.origin)
        api = find_api(request.origin, own)
        units, now = api.wait_headers, self.runtime.now
        wait = find_wait(headers, status, host=request.host, units=units, body=body, now=now)
        verdict = self.policy.verdict_of_failed_value(response) if self.policy.checks_values else None
        if verdict is not None:
            verdict = apply_rules(verdict, judgement)
            return add_wait(verdict, wait), verdict.kind is Kind.NOT_EXECUTED
        query = None if self._session is None else self._session.query
        verdict = self.service.verdict(query or judgement, status, headers, body)
        if verdict is None:
            return None, False
        may_refuse = judgement.refused is None and not judgement.session and is_for_its_host(request)
        if self._key is not None and status == IN_USE and judgement.refused is None:
            in_doubt = self.run is not None and self.run.in_doubt
            if in_doubt or not self._is_new_key:
                verdict = TRANSIENT
        verdict = api.refine(verdict, status, headers, has_wait=wait is not None, may_refuse=may_refuse)
        by_word = verdict.kind is Kind.NOT_EXECUTED and own is not None and status in own.not_executed
        return add_wait(verdict, wait), by_word

    def begin_run(self, started: float | None = None) -> Run:
        """Begin the run that counts the attempts from the time `started` on, by default from before the first one."""
        self.run = self.new_run(self.operation, self.started if started is None else started, self._spending)
        return self.run

    def new_run(self, operation: str, started: float, spending: Spending | None) -> Run:
        return Run(
            self.policy,
            operation,
            self.runtime,
            started,
            self.reports,
            awaits=self.awaits,
            subject=self.request,
            spending=spending,
        )

    def _describe_break(self, status: int) -> str:
        return f"{self.judgement.operation or 'the request'} answered {reason(status)} before its response broke off"

    def _decide(self, failure: DetailedFailure, done: int | None = None) -> Grant | None:
        """Return the retry after `failure`; `done` is the status of a successful response whose body broke."""
        judgement, session, run = self.judgement, self._session, self.run
        if run is None or (session is not None and session.has_progressed()):
            run = self.begin_run(None if session is None else self.runtime.monotonic())
        # The session may have the whole chunk. But the caller's own error must not get lost.
        stuck = self._body.why_not_again() if session is None or self._body.failed else None
        failure.blocked = None if stuck is None else Stop(Reason.BODY, stuck)
        failure.unsafe = None if self.repeatable else self.unsafe
        failure.vouched = failure.vouched or (failure.verdict.kind is not Kind.NOT_EXECUTED and self.vouched)
        if done is not None:
            run.in_doubt = failure.maybe_done = True
            if judgement.safety is not Safety.ALWAYS and self._key is None and not self.vouched:
                failure.unsafe = self._describe_break(done)  # its condition cannot hold a second time
        if session is not None and self._may_repeat:
            failure.unsafe = None
        if run.in_doubt or failure.verdict.kind is not Kind.NOT_EXECUTED:
            failure.until = self._until
        failure.billed = failure.verdict.kind is not Kind.NOT_EXECUTED and judgement.may_cost(*failure.details[1:2])
        grant = run.after(failure)
        self._unexecuted = failure.verdict.kind is Kind.NOT_EXECUTED and not run.in_doubt
        if grant is not None and session is not None:
            self.variation = session.ask(self.service, self.request)
        return grant
