"""`Answer`: may one request, call or command be repeated, and why; and what follows each kind of failure."""

from collections.abc import Mapping

from forbear.answers import tables
from forbear.core.dataclass import dataclass, field
from forbear.core.decide import Reason, Wait, decide
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Kind, Safety, Verdict
from forbear.policy import Policy

NOT_SENT = "connection refused, DNS or TLS failure"
LOST = "reset or timeout after sending"


@dataclass(frozen=True, slots=True)
class FailureOutcome:
    """One kind of failure, its HTTP status if any, whether it is retried, and why. Example: see `Answer`."""

    failure: str
    status: int | None
    retried: bool
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """May one request, call or command be repeated, and why.

    - `title` names it, and `request` has its parts. Both are without what may be secret.
    - `judgement` is that of its service, and `why` says in a few words why it may or must not be repeated.
    - `outcomes` say for each kind of failure whether `policy`, whose name is `profile`, retries it.
    - `would_vouch` is the option of a client by which you could vouch for it, None where no such word is needed or
      helps.
    - `warnings` name conditions that are there but do not count, and `remarks` say more in sentences.
    - `maybe_done` lists the responses that, on a later attempt, may mean that an earlier attempt worked.
    - `rule` says which rule judged an operation that no table has, and where its facts are from; None otherwise.
    - `more` has what only some services know.

    >>> answer = forbear.explain("POST https://api.example.com/orders")
    >>> answer.judgement.repeatable, answer.would_vouch
    (False, 'safe="POST https://api.example.com/orders"')
    >>> [outcome.failure for outcome in answer.outcomes if outcome.retried]
    ['connection refused, DNS or TLS failure']
    """

    title: str
    request: Mapping[str, object]
    profile: str
    policy: Policy
    judgement: Judgement
    why: str
    outcomes: tuple[FailureOutcome, ...]
    would_vouch: str | None = None
    maybe_done: tuple[int, ...] | tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rule: str | None = None
    more: Mapping[str, object] = field(default_factory=dict[str, object])

    def __str__(self) -> str:
        """Return the answer in one line."""
        return f"{self.title}: {'may' if self.repeatable else 'must not'} be repeated ({self.why})"

    @property
    def service(self) -> str:
        """The name of the service that judges it: "cloud_storage"; "rfc9110" and "grpc" know the protocol only."""
        return self.judgement.service

    @property
    def operation(self) -> str | None:
        """The id in the tables ("storage.objects.delete"), or the name of an RPC; None if it is not known."""
        return self.judgement.operation

    @property
    def safety(self) -> Safety:
        """The safety of the operation, whatever this request carries."""
        return self.judgement.safety

    @property
    def repeatable(self) -> bool:
        """True if this very request may be executed twice."""
        return self.judgement.repeatable

    @property
    def met(self) -> str | None:
        """The condition that makes it repeatable ("ifGenerationMatch="), None without one."""
        return self.judgement.met

    @property
    def missing(self) -> tuple[str, ...]:
        """The conditions any of which would make it repeatable; () if it is repeatable, or if no condition helps."""
        judgement = self.judgement
        return () if judgement.repeatable or judgement.refused is not None else judgement.conditions

    @property
    def duplicate(self) -> str | None:
        """The effect of a second execution, None if it has none or if no table has the operation."""
        entry = self.entry
        return None if entry is None or entry.effect == "none" else entry.effect

    @property
    def source(self) -> str | None:
        """The source of the table's row, or the rule that judged an operation which no table has; None without one."""
        entry = self.entry
        return self.rule if entry is None else entry.source.replace("JUDGEMENT", "our judgement")

    @property
    def entry(self) -> TableEntry | None:
        """The row of the table, None if no table has the operation."""
        return tables.entry(self.judgement.service, self.judgement.operation)


def reason(judgement: Judgement) -> str:
    """Return in a few words why what was judged may or must not be repeated."""
    if judgement.refused is not None:
        return judgement.refused
    if judgement.session and not judgement.repeatable:
        return "part of an upload: query the session, and send the rest"
    if judgement.vouched:
        return "you vouch that a repeat does no harm"
    if judgement.met is not None:
        return f"safe with {judgement.met}"
    if judgement.repeatable:
        if judgement.billed:
            return "it changes nothing but the bill: each attempt may be billed"
        return "a repeat is harmless" if judgement.mutation else "it changes nothing"
    if judgement.conditions:
        return f"only with {tables.join_conditions(judgement.conditions)}"
    return "a repeat could do harm"


def unsafe_text(judgement: Judgement, why_not: str) -> str:
    """Return `why_not`, but without the conditions where there are some: an answer lists them already."""
    if judgement.refused is not None or not judgement.conditions:
        return why_not
    name = judgement.operation or "it"
    return f"{name} may have been executed, and no condition is met that would make it safe to repeat"


def outcome_of(
    failure: str,
    verdict: Verdict | None,
    policy: Policy,
    judgement: Judgement,
    unsafe: str,
    *,
    status: int | None = None,
    more: str = "",
) -> FailureOutcome:
    """Return what follows if the first attempt ends as `failure` says: a retry or none, and why.

    `verdict` is None for a response that means success. `unsafe` says why what may have been executed is not repeated.
    """
    if verdict is None:
        return FailureOutcome(failure, status, False, "it means success")
    step = decide(
        policy.limits, policy.backoff, verdict, attempt=1, elapsed=0.0, u=0.5, repeatable=judgement.repeatable
    )  # fmt: skip
    if isinstance(step, Wait):
        return FailureOutcome(failure, status, True, _explain_retry(verdict, judgement) + more)
    return FailureOutcome(failure, status, False, unsafe if step.reason is Reason.UNSAFE else step.text)


def _explain_retry(verdict: Verdict, judgement: Judgement) -> str:
    """Return the reason in words why a failure with this verdict is retried, with the wait that the server requires."""
    wait = wait_text(verdict)
    if verdict.kind is Kind.NOT_EXECUTED:
        return f"it was not executed{'; at once, on the node that the response names' if verdict.delay == 0 else wait}"
    if judgement.vouched:
        return f"transient, and you vouch that a repeat does no harm{wait}"
    if judgement.met is not None:
        return f"transient, and the condition makes a repeat safe{wait}"
    entry = tables.entry(judgement.service, judgement.operation)
    if entry is not None and entry.safety is not judgement.safety:  # only the page calls it safe
        return f"transient, and the service's page on retries excepts no such request{wait}"
    if entry is not None and entry.effect != "none":
        return f"transient, and a repeat leaves the same state, if nobody else writes{wait}"
    return f"transient, and a repeat is harmless{wait}"


def wait_text(verdict: Verdict) -> str:
    """Return a text such as ", after at least 30 s, as the server asks"; it is empty if the server asks for no wait."""
    seconds = verdict.retry_after
    return "" if seconds is None else f", after at least {seconds:g} s, as the server asks"
