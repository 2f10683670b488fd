"""One call that is no HTTP request, through its attempts: an RPC, or a call of Google's clients.

After each failure, the loop that repeats the call passes a judgement on the call's safety, and gets the retry.
"""

from collections.abc import Callable, Sequence
from typing import Any

from forbear.core.attempt import Details, RequestIds
from forbear.core.decide import Reason, Stop
from forbear.core.record import reports_made
from forbear.core.report import Report
from forbear.core.service import Judgement, cure_for, why_not
from forbear.core.verdict import Kind, Verdict
from forbear.evidence.sent import MOST_BODY, Sent
from forbear.exchange.interrupt import is_interrupt
from forbear.grpc import codes
from forbear.http.request import Request, is_resumable
from forbear.policy import Policy
from forbear.run.answers import Broken
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure
from forbear.run.functions import check_takes, refuse_async
from forbear.run.harm import watch
from forbear.run.ledger import Entry, enter
from forbear.run.plan import OPTIONS
from forbear.run.runtime import current_runtime
from forbear.run.spending import Spending, admit, succeeded
from forbear.run.state import Run
from forbear.services import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.run.grant import Grant
    from forbear.run.judge_slot import RunContext
    from forbear.run.key_uses import AutomaticKey
    from forbear.run.protocols import Subject

    Described = tuple[Sent, Callable[[], bool]]

watch()  # what an adapter gives up may do harm

FORBIDDEN = "may have been executed, and the policy then forbids a repeat (repeatable=False)"


class Start:
    """The moment before the first attempt. A request that succeeds at once needs nothing else."""

    __slots__ = ("awaits", "reports", "runtime", "time")

    def __init__(self, *, awaits: bool = False) -> None:
        self.awaits = awaits
        self.runtime = runtime = current_runtime()
        self.time = runtime.monotonic()
        self.reports: int = reports_made.now  # a report made later comes from an inner retry


class CallState(Start):
    """The state of a call: its `entry` in the ledger, the adapter's `key`, and the `run` of a failure; or None each."""

    __slots__ = ("entry", "key", "policy", "run", "spending")

    def __init__(self, policy: Policy, *, awaits: bool = False, key: "AutomaticKey | None" = None) -> None:
        self.awaits = awaits  # the next three as in `Start`, without the call
        self.runtime = runtime = current_runtime()
        self.time = runtime.monotonic()
        self.reports = reports_made.now
        self.policy = policy
        self.entry: Entry | None = None
        self.key = key
        self.run: Run | None = None
        self.spending = None if policy.budget is None else Spending(policy.budget)

    def begin(self, operation: Callable[[], str | None], subject: "Subject | None") -> None:
        """Count the first attempt in the policy's budget; raise Throttled, with a report, if the budget refuses it."""
        if self.spending is None:
            return
        try:
            admit(self.spending, self.runtime, lambda: self.begin_run(operation(), subject))
        except BaseException:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Note that the call was certainly not executed: its entry goes, and its key is free for another one."""
        if self.entry is not None:
            self.entry.take_back()
        if self.key is not None:
            self.key.take_back()

    def end(self) -> None:
        """Count the end of an attempt that was cancelled; do nothing if its end was counted already."""
        if self.spending is not None:
            self.spending.end()

    @property
    def report(self) -> Report | None:
        """The report once the call was given up; None before that, and for an error that is permanent at once."""
        return None if self.run is None else self.run.report

    def succeeded(self, *, is_large: bool = False) -> None:
        """Count a success, and notify the listeners after failures; the entry of a large call keeps no parameters."""
        if self.entry is not None:
            self.entry.done(is_large=is_large)
        if self.key is not None:
            self.key.succeeded()
        if self.run is not None or self.spending is not None:
            succeeded(self.run, self.policy, self.spending)

    def begin_run(self, operation: str | None, subject: "Subject | None") -> Run:
        """Return the run of this call, made at its first failure."""
        if self.run is None:
            policy, name = self.policy, self.policy.name or operation or "the call"
            self.run = Run(
                policy, name, self.runtime, self.time, self.reports, awaits=self.awaits, spending=self.spending
            )
        self.run.subject = subject
        return self.run


class RetriedCall(CallState):
    """A call that one judgement is about. Report each attempt, ask the grant that `failed` returns, and wait for it."""

    __slots__ = ()

    def enter(self, describe: "Callable[..., Described]", *parts: Any) -> None:
        """Enter the call in the ledgers of the runs around it, before it is sent, if `is_used[0]` is true."""
        self.entry = Entry(judge_described, describe, *parts)
        self.reports = enter(self.entry)

    def failed(
        self,
        error: Exception,
        verdict: Verdict,
        judgement: Judgement,
        code: int | None = None,
        stuck: str | None = None,
        option: str | None = None,
        subject: "Subject | None" = None,
        cure: str | None = None,
        by_word: bool = False,
        name: str | None = None,
        answer: "tuple[int | None, RequestIds] | None" = None,
        until: float | None = None,
        refused: bool = False,
    ) -> "Grant | None":
        """Return the retry that follows, None to raise `error`.

        `judgement` is the safety of the call. `code` is the status of the response, or the number of a gRPC call's
        code; None without a response. `stuck` says why another attempt is impossible, although the operation would
        allow it; None if it is possible. `option` is the one by which the user may vouch for the call, and `cure` says
        what else makes it repeatable, both for the reason; None for nothing. `subject` is the request, for the report;
        None if it is not known. `by_word` says that only the user calls the failure NOT_EXECUTED.

        `name` is that of the failure in reports, by default the class of `error`. `answer` has the status and the
        request ids of the response, where `error` does not show them. `until` is the number of seconds, from the first
        attempt, within which a repeat is safe; None for no limit. `refused` says that the server answered that the call
        is wrong, so it did not execute it.

        What a signal handler raised is meant for the caller: no retry follows.
        """
        if is_interrupt(error):
            self.leave_in_doubt(error, judgement, subject)
            self.end()
            return None
        policy = self.policy
        run = self.begin_run(judgement.operation, subject)
        unsafe = None
        if policy.repeatable is False:
            unsafe = f"{judgement.operation or 'the call'} {FORBIDDEN}"
        elif not judgement.repeatable:
            unsafe = (
                why_not(judgement, "the call") + cure_for(judgement, option) + ("" if cure is None else f"; {cure}")
            )
        now = self.runtime.now()
        failure = DetailedFailure(
            verdict,
            error,
            unsafe=unsafe,
            name=name,
            text=errors.text_of_call(error),
            blocked=None if stuck is None else Stop(Reason.BODY, stuck),
            maybe_done=code in judgement.maybe_done,
            vouched=by_word or (judgement.vouched and verdict.kind is not Kind.NOT_EXECUTED),
            details=details_of(error, now, subject) if answer is None else (now, *answer),
        )
        if self.key is not None and until is not None:
            until = min(until, self.key.until - self.time)  # an earlier attempt of a run around may have sent it
        failure.until, failure.billed = until, verdict.kind is not Kind.NOT_EXECUTED and judgement.may_cost(code)
        grant = run.after(failure)
        unexecuted = not run.in_doubt and (refused or verdict.kind is Kind.NOT_EXECUTED)
        if grant is None and self.entry is not None and unexecuted:  # another attempt may be executed
            self.take_back()
        return grant

    def leave_in_doubt(self, error: BaseException, judgement: Judgement, subject: "Subject | None" = None) -> None:
        """Attach a report to `error`, which interrupted the call, unless the table and the policy allow a repeat."""
        if judgement.repeatable and self.policy.repeatable is not False:
            return
        run = self.begin_run(judgement.operation, subject)
        unsafe = why_not(judgement, "the call")
        leave_in_doubt(error, run.operation, unsafe, run.runtime, run.started, subject, run.attempt)
        run.in_doubt = True

    def time_left(self, timeout: float | None) -> float | None:
        """Return the seconds left of the caller's `timeout` for all attempts, at least 0; None without a timeout."""
        return None if timeout is None else max(0.0, timeout - (self.runtime.monotonic() - self.time))


def refuse_for_clients(policy: Policy, vouch: str) -> None:
    """Raise ValueError for a policy with `repeatable=True`, also a joined one: it would cover all that a client sends.

    The text ends with `vouch`, which says what to write instead. Also raises it for the options that only functions
    have, such as `on_give_up`. Example: see `HttpOptions`.
    """
    for name, option in OPTIONS.items():
        if option.of_functions and getattr(policy, name) != option.default:
            raise ValueError(f"`policy` must not have {name}, which is for functions: decorate the one that calls")
    if any(each.repeatable is True for each in (policy, *policy.others)):
        raise ValueError(
            f"`policy` must not have repeatable=True, which would hold for all requests of a client; {vouch}"
        )


def details_of(error: Exception, now: float, subject: object) -> Details:
    """Return what a support case needs of `error`: the time `now`, the status or the name of the code, and the ids."""
    resumable = isinstance(subject, Request) and is_resumable(subject)
    status: int | str | None = errors.status_of(error)
    if status is None:
        code = errors.code_of(error)
        status = codes.NAMES[code] if code is not None and 0 <= code < len(codes.NAMES) else None
    return now, status, errors.request_ids_of(error, resumable=resumable)


def first_limit(policy: Policy | None) -> float | None:
    """Return the seconds that a first attempt under `policy` may take, None without an attempt timeout."""
    if policy is None or policy.attempt_timeout is None or policy.limits.timeout is None:
        return None if policy is None else policy.attempt_timeout
    return min(policy.attempt_timeout, policy.limits.timeout)


def check_word(parameter: str, word: object) -> None:
    """Raise TypeError for a function by which a user vouches that is async, or takes no request. Other values pass."""
    if callable(word):
        refuse_async(f"`{parameter}`", word, "judge by the request or the response alone")
        if parameter == "safe":
            check_takes("`safe`", word, "request")


def drop_proof(verdict: Verdict) -> Verdict:
    """Return `verdict`, but TRANSIENT for NOT_EXECUTED: the attempt certainly began, whatever its error claims."""
    return verdict.replace(kind=Kind.TRANSIENT) if verdict.kind is Kind.NOT_EXECUTED else verdict


def with_proof(ruled: Verdict, verdict: Verdict) -> Verdict:
    """Return `ruled`, a policy's verdict, but as NOT_EXECUTED if it is TRANSIENT and `verdict` is NOT_EXECUTED.

    So is the verdict of a policy whose function raised.
    """
    proven = (ruled.kind is Kind.TRANSIENT or isinstance(ruled, Broken)) and verdict.kind is Kind.NOT_EXECUTED
    return ruled.replace(kind=Kind.NOT_EXECUTED) if proven else ruled


def apply_rules(verdict: Verdict, judgement: Judgement) -> Verdict:
    """Return the user's verdict, but TRANSIENT for NOT_EXECUTED of what is refused or belongs to a session.

    A part of a batch or of an upload may have been executed, whatever the user says.
    """
    if verdict.kind is Kind.NOT_EXECUTED and (judgement.refused is not None or judgement.session):
        return verdict.replace(kind=Kind.TRANSIENT)
    return verdict


def is_only_of_user(verdict: Verdict, proven: Verdict) -> bool:
    """Return whether a verdict is NOT_EXECUTED by the user's word alone; `proven` is the one without that word."""
    return verdict.kind is Kind.NOT_EXECUTED and proven.kind is not Kind.NOT_EXECUTED


def limit_timeout(policy: Policy, timeout: float) -> Policy:
    """Return a policy whose timeout, and that of each policy joined to it, is at most `timeout` seconds."""
    if policy.others:
        policy = policy.replace(others=tuple(limit_timeout(other, timeout) for other in policy.others))
    limits = policy.limits
    if limits.timeout is not None and limits.timeout <= timeout:
        return policy
    return policy.replace(limits=limits.replace(attempts=limits.attempts, timeout=timeout))  # a default limit stays


def judge_described(
    context: "RunContext | None", reads: Sequence[object], done: bool, describe: "Callable[..., Described]", *parts: Any
) -> Judgement:
    """Return the judgement on a call in the ledger, an RPC, commands or a call of AWS.

    `describe(*parts)` returns the request, and a function that says whether the user vouches for it.
    """
    from forbear.judges.facts import Word
    from forbear.judges.functions import judge_sent  # only if a run asks

    sent, asks = describe(*parts)
    try:
        is_by_word = asks()
    except Exception:  # of a function of the user, who then vouches for nothing
        is_by_word = False
    return judge_sent(sent, context, reads, done=done, word=Word(vouched=is_by_word))


def is_small(message: Any) -> bool:
    """Return whether a request is known to be no larger than 64 KiB, or its size cannot be told quickly."""
    if isinstance(message, str | bytes):
        return len(message) <= MOST_BODY
    return not hasattr(message, "ByteSize") or bool(message.ByteSize() <= MOST_BODY)


def describe_rpc(rpc: Any, message: object) -> "Described":
    """Return a call of an `Rpc` for its entry."""
    from forbear.grpc.call import GrpcCall

    name = rpc.method.removeprefix("/")
    return Sent("grpc", "grpc", name, GrpcCall(name, message)), lambda: bool(rpc.judge(message).vouched)
