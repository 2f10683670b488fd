"""The answer about one request, call or command: what follows each kind of failure and why, as text and as JSON."""

from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from forbear.answers import tables
from forbear.answers.tables import either
from forbear.cli.kit.forecast import end_text, forecast, limits_text, range_text
from forbear.cli.kit.output import columns, console, show_table, wrapped
from forbear.core.decide import Reason, Wait, decide
from forbear.core.redact import printable
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Kind, Verdict
from forbear.policy import Policy

_LABEL = 12  # columns of the names of facts

NOT_SENT = "connection refused, DNS or TLS failure"
LOST = "reset or timeout after sending"


@dataclass(frozen=True)
class FailureOutcome:
    """The answer for one kind of failure: its description, whether it is retried, and why.

    `status` is the HTTP status, None for a failure without one and for gRPC and Redis.
    """

    failure: str
    status: int | None
    retried: bool
    why: str


def outcome_of(
    failure: str, verdict: Verdict | None, policy: Policy, judgement: Judgement, more: str = ""
) -> FailureOutcome:
    """Return what follows if the first attempt ends as `failure` says: a retry or none, and why.

    `verdict` is None for a response that means success. `more` is appended to the reason for a retry.
    """
    if verdict is None:
        return FailureOutcome(failure, None, False, "it means success")
    step = decide(
        policy.limits, policy.backoff, verdict, attempt=1, elapsed=0.0, u=0.5, repeatable=judgement.repeatable
    )  # fmt: skip
    if isinstance(step, Wait):
        return FailureOutcome(failure, None, True, why_retried(verdict, judgement) + more)
    return FailureOutcome(failure, None, False, _why_unsafe(judgement) if step.reason is Reason.UNSAFE else step.text)


def why_retried(verdict: Verdict, judgement: Judgement) -> str:
    """Return the reason in words why a failure with this verdict is retried, with the wait that the server requires."""
    wait = wait_text(verdict)
    if verdict.kind is Kind.NOT_EXECUTED:
        return f"it was not executed{'; at once, on the node that the response names' if verdict.delay == 0 else wait}"
    if judgement.vouched:
        return f"transient, and you vouch that a repeat does no harm{wait_text(verdict)}"
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


def _why_unsafe(judgement: Judgement) -> str:
    if judgement.refused is not None:
        return judgement.refused
    name = judgement.operation or "it"
    if judgement.conditions:
        return f"{name} may have been executed, and no condition is met that would make it safe to repeat"
    return f"{name} may have been executed and must not be executed twice"


@dataclass(frozen=True)
class Answer:
    """The answer about one request.

    `title` and `request` name it, without parts that may be secret. `maybe_done` lists the responses that, on a later
    attempt, may mean that an earlier attempt worked. `remarks` are further sentences, `more` further JSON fields.
    `warnings` name conditions that cannot be read; the caller prints them if the answer is not printed as JSON. `cure`
    has the words about vouching with which some reasons end; the text has them once, on a line that can be pasted from.
    """

    title: str
    request: dict[str, object]
    profile: str
    policy: Policy
    judgement: Judgement
    outcomes: list[FailureOutcome]
    maybe_done: tuple[int, ...] | tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    more: dict[str, object] = field(default_factory=dict[str, object])
    warnings: tuple[str, ...] = ()
    cure: str = ""

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        judgement, entry = self.judgement, self._entry()
        return {
            "request": self.request,
            "service": judgement.service,
            "profile": self.profile,
            "operation": judgement.operation,
            "safety": judgement.safety.value,
            "conditions": list(judgement.conditions),
            "met": judgement.met,
            "warnings": list(self.warnings),
            "repeatable": judgement.repeatable,
            "mutation": judgement.mutation,
            "refused": judgement.refused,
            **self.more,
            "maybe_done": list(self.maybe_done),
            "duplicate": entry.effect if entry else None,
            "source": entry.source if entry else None,
            "failures": [asdict(outcome) for outcome in self.outcomes],
            "schedule": self._schedule(),
        }

    def show(self) -> None:
        """Print the answer as text to stdout: facts about the request, a table of failures, remarks and the waits."""
        from rich.markup import escape

        out = console()
        out.print(f"{printable(self.title)}\n", style="bold", markup=False)
        for label, text in self._facts().items():
            if text:
                out.print(wrapped(f"{label:<{_LABEL}}{printable(text)}", indent=_LABEL), markup=False)
        out.print()
        table = columns("failure", "retried", "why")
        ending, has_cure = f"; {self.cure}", False
        for (retried, why, _), group in groupby(
            self.outcomes, lambda each: (each.retried, each.why, each.status is None)
        ):
            failures = ", ".join(outcome.failure for outcome in group)
            has_cure = has_cure or why.endswith(ending)
            reason = escape(why.removesuffix(ending))
            table.add_row(escape(failures), "[green]yes[/]" if retried else "[yellow]no[/]", reason)
        show_table(table)
        if has_cure:
            words = self.cure.replace("if that does", "if a repeat does", 1)
            out.print(printable(words), markup=False, soft_wrap=True)
        if self.maybe_done:
            responses = ", ".join(map(str, self.maybe_done))
            text = f"{responses} on a later attempt may mean that an earlier attempt worked"
            out.print(wrapped(text), markup=False)
        for remark in self.remarks:
            out.print(wrapped(printable(remark)), markup=False)
        out.print(wrapped(self._schedule()), markup=False)

    def _facts(self) -> dict[str, str]:
        judgement, entry = self.judgement, self._entry()
        conditions = either(judgement.conditions)
        return {
            "service": f"{judgement.service} ({self.profile})",
            "operation": judgement.operation or f"not known{f': {judgement.unknown}' if judgement.unknown else ''}",
            "safety": judgement.safety.value,
            "conditions": f"{conditions} (met: {judgement.met or 'none'})" if conditions else "",
            "repeatable": "yes"
            if judgement.repeatable
            else f"no{f': {judgement.refused}' if judgement.refused else ''}",
            "duplicate": entry.effect if entry and entry.effect != "none" else "",
            "source": entry.source.replace("JUDGEMENT", "our judgement") if entry else "",
        }

    def _entry(self) -> TableEntry | None:
        return tables.entry(self.judgement.service, self.judgement.operation)

    def _schedule(self) -> str:
        policy = self.policy
        predicted = forecast(policy.limits, policy.backoff)
        first = ", ".join(range_text(retry.wait) for retry in predicted.retries[:3])
        return f"waits of {first} and so on; {limits_text(policy.limits)}; {end_text(predicted)}"
