"""One row of a table, ready to judge requests or calls: all its answers are made beforehand. It knows no service."""

from collections.abc import Sequence
from typing import TypeVar

from forbear.core.verdict import Safety
from forbear.http.request import Judgement, Request
from forbear.services import codes
from forbear.services.conditions import Condition, FieldTest, HttpTest, compiled, compiled_fields
from forbear.services.table import Row, Rule

T = TypeVar("T")


class Operation:
    """What is known of one operation of an HTTP API; `rule` stands in for that of its row."""

    __slots__ = ("_met", "_unmet")

    def __init__(self, service: str, row: Row, rule: Rule | None = None) -> None:
        rule = rule or row.rule
        conditions = compiled(rule.conditions)
        self._unmet = _unmet(service, row.id, row, rule, conditions, codes.statuses(row.maybe_done))
        self._met: tuple[tuple[HttpTest, Judgement], ...] = _met(self._unmet, conditions)

    def judge(self, request: Request, query: str) -> Judgement:
        """The judgement on a request for this operation, whose target has the query `query`."""
        for holds, judgement in self._met:
            if holds(request, query):
                return judgement
        return self._unmet


class Procedure:
    """What is known of one RPC, `name` without the leading slash; `rule` stands in for that of its row."""

    __slots__ = ("_met", "_unmet")

    def __init__(self, service: str, name: str, row: Row, rule: Rule | None = None) -> None:
        rule = rule or row.rule
        conditions = compiled_fields(rule.conditions)
        self._unmet = _unmet(service, name, row, rule, conditions, codes.numbers(row.maybe_done))
        self._met: tuple[tuple[FieldTest, Judgement], ...] = _met(self._unmet, conditions)

    def judge(self, message: object) -> Judgement:
        """The judgement on a call with `message`."""
        for holds, judgement in self._met:
            if holds(message):
                return judgement
        return self._unmet


def _unmet(
    service: str, id: str, row: Row, rule: Rule, conditions: Sequence[Condition[T]], maybe_done: tuple[int, ...]
) -> Judgement:
    return Judgement(
        service,
        id,
        rule.safety,
        conditions=tuple(condition.text for condition in conditions),
        repeatable=rule.safety is Safety.ALWAYS,
        maybe_done=maybe_done,
        mutation=not row.is_read,
    )


def _met(unmet: Judgement, conditions: Sequence[Condition[T]]) -> tuple[tuple[T, Judgement], ...]:
    return tuple((condition.holds, unmet.replace(met=condition.text, repeatable=True)) for condition in conditions)
