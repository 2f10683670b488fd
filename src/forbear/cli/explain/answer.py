"""An answer about one request, call or command, as text and as JSON. What it says was found out elsewhere."""

from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from forbear.cli import wording
from forbear.cli.explain import tables
from forbear.cli.explain.outcome import Judged, Outcome, either
from forbear.cli.forecast import forecast
from forbear.cli.output import columns, console, show_table
from forbear.core.redact import printable
from forbear.core.service import TableEntry
from forbear.policy import Policy


@dataclass(frozen=True)
class Answer:
    """All that is said of one request.

    `title` and `request` name it, without what may be secret. `maybe_done` lists the replies that on a later attempt
    may mean that an earlier one had worked. `remarks` are further sentences, `more` further fields of the JSON.
    """

    title: str
    request: dict[str, object]
    profile: str
    policy: Policy
    judged: Judged
    outcomes: list[Outcome]
    maybe_done: tuple[int, ...] | tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    more: dict[str, object] = field(default_factory=dict[str, object])

    def document(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        judged, known = self.judged, self._known()
        return {
            "request": self.request,
            "service": judged.service,
            "profile": self.profile,
            "operation": judged.operation,
            "safety": judged.safety.value,
            "conditions": list(judged.conditions),
            "met": judged.met,
            "repeatable": judged.repeatable,
            "mutation": judged.mutation,
            "refused": judged.refused,
            **self.more,
            "maybe_done": list(self.maybe_done),
            "duplicate": known.effect if known else None,
            "source": known.source if known else None,
            "failures": [asdict(outcome) for outcome in self.outcomes],
            "schedule": self._schedule(),
        }

    def show(self) -> None:
        """Print the answer for people."""
        from rich.markup import escape

        out = console()
        out.print(f"{printable(self.title)}\n", style="bold", markup=False)
        for label, text in self._facts().items():
            if text:
                out.print(f"{label:<12}{printable(text)}", markup=False)
        out.print()
        table = columns("failure", "retried", "why")
        for (retried, why, _), group in groupby(self.outcomes, lambda one: (one.retried, one.why, one.status is None)):
            failures = ", ".join(outcome.failure for outcome in group)
            table.add_row(escape(failures), "[green]yes[/]" if retried else "[yellow]no[/]", escape(why))
        show_table(table)
        if self.maybe_done:
            replies = ", ".join(map(str, self.maybe_done))
            out.print(f"{replies} on a later attempt may mean that an earlier one had worked", markup=False)
        for remark in self.remarks:
            out.print(printable(remark), markup=False)
        out.print(self._schedule(), markup=False)

    def _facts(self) -> dict[str, str]:
        judged, known = self.judged, self._known()
        wanted = either(judged.conditions)
        return {
            "service": f"{judged.service} ({self.profile})",
            "operation": judged.operation or "not known",
            "safety": judged.safety.value,
            "conditions": f"{wanted} (met: {judged.met or 'none'})" if wanted else "",
            "repeatable": "yes" if judged.repeatable else f"no{f': {judged.refused}' if judged.refused else ''}",
            "duplicate": known.effect if known and known.effect != "none" else "",
            "source": known.source.replace("JUDGEMENT", "our judgement") if known else "",
        }

    def _known(self) -> TableEntry | None:
        return tables.entry(self.judged.service, self.judged.operation)

    def _schedule(self) -> str:
        policy = self.policy
        found = forecast(policy.limits, policy.backoff)
        first = ", ".join(wording.of_range(retry.wait) for retry in found.retries[:3])
        return f"waits of {first} and so on; {wording.of_limits(policy.limits)}; {wording.of_end(found)}"
