"""`HostBudgets`: a retry budget for each host and service, so that one failing host does not stop retries to others."""

from weakref import WeakValueDictionary

from forbear.core import check
from forbear.run.budget import Budget, _lock
from forbear.run.spending import PER_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, NoReturn

    from forbear.run.budget import BudgetRule


class HostBudgets(Budget):
    """The budgets of `Budget.per_host`, one for each host and service, made at the first use of each.

    At most `most` budgets are kept: the least recently used one goes, and its host gets a new, full one. A budget that
    a request or a client is using is not lost, even if it is over the number. A copy is the same object; unpickling
    makes a new, empty one.
    """

    __slots__ = ("_arguments", "_kept", "_live", "_make", "_spare")

    by_host: "ClassVar[bool]" = True

    def __init__(self, make_or_rule: "BudgetRule | Callable[[], Budget] | None" = None, most: int = 1000) -> None:
        check.at_least("most", most, 1, what="a whole number of budgets", whole=True)
        self._arguments = make_or_rule, most
        self._make: Any = make_or_rule if callable(make_or_rule) else lambda: Budget(make_or_rule)
        first = self._made()
        super().__init__(first._rule)
        self._spare = [first]
        self._kept: dict[tuple[str, str], Budget] = {}  # the last one is the one used last
        self._live: WeakValueDictionary[tuple[str, str], Budget] = WeakValueDictionary()

    def of(self, host: str, service: str = "") -> Budget:
        """Return the budget of `host` (in any case) and `service`; functions that call one host share it, too."""
        key = host.lower(), service
        budget = self._find(key)
        if budget is None:
            made = self._spare.pop() if self._spare else self._made()
            with _lock[0]:
                budget = self._live.setdefault(key, made)  # another thread may have made one
        self._keep(key, budget)
        return budget

    def take(self) -> "NoReturn":
        """Raise TypeError: a budget per host needs a host."""
        raise TypeError(PER_HOST)

    async def atake(self) -> "NoReturn":
        """Raise TypeError: a budget per host needs a host."""
        raise TypeError(PER_HOST)

    def put(self, *, retried: bool) -> "NoReturn":
        """Raise TypeError: a budget per host needs a host."""
        raise TypeError(PER_HOST)

    def _find(self, key: tuple[str, str]) -> Budget | None:
        with _lock[0]:
            budget = self._kept.get(key)
            return self._live.get(key) if budget is None else budget

    def _keep(self, key: tuple[str, str], budget: Budget) -> None:
        with _lock[0]:
            self._kept.pop(key, None)
            self._kept[key] = budget
            while len(self._kept) > self._arguments[1]:
                self._kept.pop(next(iter(self._kept)), None)

    def _made(self) -> Budget:
        budget: object = self._make()
        if not isinstance(budget, Budget) or budget.by_host:
            raise TypeError(
                "`make_or_rule` must be a rule, or a function that makes a forbear.Budget, such as "
                f"forbear.Budget.envoy; got one that makes {budget!r}"
            )
        return budget

    def __reduce__(self) -> "tuple[type[HostBudgets], tuple[Any, ...]]":
        return type(self), self._arguments

    def __repr__(self) -> str:
        make_or_rule, most = self._arguments
        return f"Budget.per_host({self._rule if make_or_rule is None else make_or_rule!r}, most={most})"
