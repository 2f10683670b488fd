"""One row of an HTTP table, ready to judge requests: all its answers are made beforehand. It knows no service."""

from forbear.core.verdict import Safety
from forbear.http.request import Judgement, Request
from forbear.services.conditions import compiled
from forbear.services.table import Rule


class Operation:
    """What is known of one operation of an HTTP API under one rule."""

    __slots__ = ("_met", "_unmet")

    def __init__(self, service: str, id: str, rule: Rule, *, mutation: bool, maybe_done: tuple[int, ...] = ()) -> None:
        conditions = compiled(rule.conditions)
        self._unmet = Judgement(
            service,
            id,
            rule.safety,
            conditions=tuple(condition.text for condition in conditions),
            repeatable=rule.safety is Safety.ALWAYS,
            maybe_done=maybe_done,
            mutation=mutation,
        )
        self._met = tuple(
            (condition.holds, self._unmet.replace(met=condition.text, repeatable=True)) for condition in conditions
        )

    def judge(self, request: Request, query: str) -> Judgement:
        """The judgement on a request for this operation, whose target has the query `query`."""
        for holds, judgement in self._met:
            if holds(request, query):
                return judgement
        return self._unmet
