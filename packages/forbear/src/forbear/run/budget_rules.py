"""The check that a rule of a budget keeps its contract, `forbear.protocols.BudgetRule`."""

from forbear.core.budget import MICRO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.core.verdict import Verdict
    from forbear.protocols import BudgetRule, EarlierRule

_VARARGS = 0x04  # CO_VARARGS


class _Adapted:
    """An `EarlierRule` with the methods of a `BudgetRule`; each of its retries costs one token."""

    __slots__ = ("_rule",)

    def __init__(self, rule: "EarlierRule") -> None:
        self._rule = rule

    def start(self) -> list[int]:
        return self._rule.start()

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        return MICRO if self._rule.take(state, now) else None

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        self._rule.put(state, now, retried=cost > 0)


def adapted(rule: "Any") -> "BudgetRule":
    """Return `rule` as a `BudgetRule`; raise TypeError for what is no rule, with the names of the missing methods.

    An `EarlierRule` issues a DeprecationWarning at the line that makes the budget.
    """
    if isinstance(rule, type) or not callable(getattr(rule, "take", None)):
        raise TypeError(f"`rule` must be a rule such as forbear.TokenBucket() or None (that one), got {rule!r}")
    if callable(getattr(rule, "succeeded", None)) and callable(getattr(rule, "start", None)):
        code = getattr(rule.take, "__code__", None)
        if hasattr(rule, "put") or (code is not None and code.co_argcount < 4 and not code.co_flags & _VARARGS):
            raise TypeError(
                "`rule` must not mix two contracts: rename put(state, now, *, retried) to succeeded(state, now, cost), "
                f"and let take(state, now, verdict) return the cost or None, got {rule!r}"
            )
        return rule  # type: ignore[no-any-return]
    if callable(getattr(rule, "put", None)) and callable(getattr(rule, "start", None)):
        import warnings

        text = (
            "a budget's rule with put(state, now, *, retried) and take(state, now) is deprecated: "
            "use succeeded(state, now, cost) and take(state, now, verdict)"
        )
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return _Adapted(rule)
    raise TypeError(
        "`rule` must have the methods start(), take(state, now, verdict) and succeeded(state, now, cost), "
        f"got {rule!r}; add the missing ones, as in forbear.TokenBucket"
    )
