"""Print an answer as text, or make a document of it: `forbear explain`, and `forbear curl --dry-run`."""

from dataclasses import asdict
from itertools import groupby
from typing import Any

from forbear.answers.answer import Answer
from forbear.answers.tables import join_conditions
from forbear.cli.kit.forecast import end_text, forecast, limits_text, range_text
from forbear.cli.kit.output import columns, console, name_options, show_table, warn, wrap
from forbear.text.redact import printable

_LABEL = 12  # columns of the names of facts


def show_answer(answer: Answer) -> None:
    """Print facts about the request, a table of failures, remarks and the waits to stdout, and warnings to stderr."""
    from rich.markup import escape

    out = console()
    out.print(f"{printable(answer.title)}\n", style="bold", markup=False)
    for label, text in _facts(answer).items():
        if text:
            out.print(wrap(f"{label:<{_LABEL}}{printable(text)}", indent=_LABEL), markup=False)
    out.print()
    table = columns("failure", "retried", "why")
    vouch = f"vouch for it with {answer.would_vouch}"
    ending = f"; if that does no harm, {vouch}"  # said once, on a line that can be pasted from
    for (retried, why, _), group in groupby(
        answer.outcomes, lambda each: (each.retried, each.why, each.status is None)
    ):
        failures = ", ".join(outcome.failure for outcome in group)
        table.add_row(
            escape(failures), "[green]yes[/]" if retried else "[yellow]no[/]", escape(why.removesuffix(ending))
        )
    show_table(table)
    if answer.would_vouch is not None:
        out.print(printable(f"if a repeat does no harm, {vouch}"), markup=False, soft_wrap=True)
    if answer.maybe_done:
        responses = ", ".join(map(str, answer.maybe_done))
        text = f"{responses} on a later attempt may mean that an earlier attempt worked"
        out.print(wrap(text), markup=False)
    for remark in answer.remarks:
        out.print(wrap(printable(remark)), markup=False)
    out.print(wrap(_waits_text(answer)), markup=False)
    for text in answer.warnings:
        warn(text)


def _facts(answer: Answer) -> dict[str, str]:
    judgement = answer.judgement
    conditions = join_conditions(judgement.conditions)
    unknown = f": {judgement.unknown}" if judgement.unknown else ""
    refused = f": {judgement.refused}" if judgement.refused else ""
    return {
        "service": f"{answer.service} ({answer.profile})",
        "api": str(answer.more.get("api") or ""),
        "operation": answer.operation or f"not known{unknown}",
        "safety": answer.safety.value,
        "conditions": f"{conditions} (met: {answer.met or 'none'})" if conditions else "",
        "repeatable": "yes" if answer.repeatable else f"no{refused}",
        "duplicate": answer.duplicate or "",
        "source": answer.source or "",
    }


def _waits_text(answer: Answer) -> str:
    """Describe the waits of the answer's policy, its limits, and where a run ends."""
    policy = answer.policy
    predicted = forecast(policy.limits, policy.backoff)
    first = ", ".join(range_text(retry.wait) for retry in predicted.retries[:3])
    return f"waits of {first} and so on; {limits_text(policy.limits)}; {end_text(predicted)}"


def document_of(answer: Answer) -> dict[str, Any]:
    """Return an answer as a JSON object."""
    judgement, entry = answer.judgement, answer.entry
    return {
        "request": answer.request,
        "service": answer.service,
        "profile": answer.profile,
        "operation": answer.operation,
        "safety": answer.safety.value,
        "conditions": list(judgement.conditions),
        "met": answer.met,
        "warnings": [name_options(text) for text in answer.warnings],
        "repeatable": answer.repeatable,
        "mutation": judgement.mutation,
        "refused": judgement.refused,
        **answer.more,
        "maybe_done": list(answer.maybe_done),
        "duplicate": entry.effect if entry else None,
        "source": entry.source if entry else answer.rule,
        "failures": [asdict(outcome) for outcome in answer.outcomes],
        "schedule": _waits_text(answer),
    }
