"""Recorded requests, judged one by one and printed worst first. What is judged how is for the services to say."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from forbear.cli.explain import http
from forbear.cli.explain.har import Recorded
from forbear.cli.explain.outcome import either
from forbear.cli.output import console
from forbear.core.redact import printable
from forbear.core.service import Judgement
from forbear.core.verdict import Effect, Verdict

_GROUPS = {
    "failed": ("failed or unknown, and must not be repeated", "yellow"),
    "unguarded": ("may be repeated only with a condition that is not there", None),
    "unrepeatable": ("must not be repeated", None),
    "repeatable": ("may be repeated", "dim"),
}
"""The groups, worst first, each in words and with its style."""

_WIDE = 70  # longer requests push what follows them to the right


@dataclass(frozen=True)
class Judged:
    """A recorded request with its judgement; `verdict` is what its reply means, None for a success or no reply."""

    recorded: Recorded
    judgement: Judgement
    verdict: Verdict | None

    @property
    def group(self) -> str:
        """Its group."""
        judgement = self.judgement
        if judgement.repeatable:
            return "repeatable"
        if judgement.mutation and (self.recorded.status is None or self.verdict is not None):
            return "failed"
        return "unguarded" if judgement.conditions else "unrepeatable"

    @property
    def in_doubt(self) -> bool:
        """Whether nobody knows if it was executed."""
        return self.recorded.status is None or (self.verdict is not None and self.verdict.effect is Effect.UNKNOWN)


def judged(recorded: Iterable[Recorded], service: str | None, profile: str) -> list[Judged]:
    """The requests with their judgements, worst first, and else as they were recorded."""
    order = list(_GROUPS)
    found = [_judge(one, service, profile) for one in recorded]
    return sorted(found, key=lambda one: (order.index(one.group), one.group == "failed" and not one.in_doubt))


def _judge(recorded: Recorded, service: str | None, profile: str) -> Judged:
    _, judge = http.chosen(recorded.request, service, profile)
    judgement = judge.classify(recorded.request)
    status = recorded.status
    verdict = None if status is None else judge.verdict(judgement, status, recorded.headers, lambda: recorded.body)
    return Judged(recorded, judgement, verdict)


def show(found: list[Judged]) -> None:
    """Print one line a request, never broken, and the counts."""
    out = console()
    requests = [_request(one) for one in found]
    wide = min(max(map(len, requests), default=0), _WIDE)
    if found:
        out.print(f"reply   repeatable   {'request':<{wide}}   operation and reason", style="bold", markup=False)
    for one, request in zip(found, requests, strict=True):
        reply = one.recorded.status or "none"
        repeatable = "yes" if one.judgement.repeatable else "no"
        why = f"{one.judgement.operation or 'not known'}: {_why(one.judgement)}"
        line = f"{reply!s:<8}{repeatable:<13}{request:<{wide}}   {why}"
        out.print(line, style=_GROUPS[one.group][1], markup=False)
    click.echo(f"{chr(10) if found else ''}{len(found)} request{'' if len(found) == 1 else 's'}")
    for group, (text, _) in _GROUPS.items():
        click.echo(f"{_count(found, group):>5} {text}")


def print_json(found: list[Judged], profile: str) -> None:
    """Print all of it as JSON."""
    document = {
        "profile": profile,
        "counts": {"requests": len(found), **{group: _count(found, group) for group in _GROUPS}},
        "requests": [_document(one) for one in found],
    }
    click.echo(json.dumps(document, indent=2))


def _request(one: Judged) -> str:
    request = one.recorded.request
    return printable(f"{request.method} {request.host}{http.path_of(request)}")


def _count(found: list[Judged], group: str) -> int:
    return sum(one.group == group for one in found)


def _why(judgement: Judgement) -> str:
    if judgement.refused is not None:
        return judgement.refused
    if judgement.session and not judgement.repeatable:
        return "a part of an upload: ask the session what it has, and send the rest"
    if judgement.met is not None:
        return f"safe with {judgement.met}"
    if judgement.repeatable:
        return "a repeat does no harm" if judgement.mutation else "it changes nothing"
    if judgement.conditions:
        return f"only with {either(judgement.conditions)}"
    return "a repeat could do harm"


def _document(one: Judged) -> dict[str, Any]:
    request, judgement = one.recorded.request, one.judgement
    return {
        "entry": one.recorded.number,
        "group": one.group,
        "request": {"method": request.method, "host": request.host, "path": http.path_of(request)},
        "status": one.recorded.status,
        "verdict": None if one.verdict is None else one.verdict.kind.value,
        "service": judgement.service,
        "operation": judgement.operation,
        "safety": judgement.safety.value,
        "conditions": list(judgement.conditions),
        "met": judgement.met,
        "repeatable": judgement.repeatable,
        "mutation": judgement.mutation,
        "session": judgement.session,
        "refused": judgement.refused,
        "why": _why(judgement),
    }
