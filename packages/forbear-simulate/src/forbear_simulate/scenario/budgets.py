"""The retry budgets of a scenario: the rule of one, who shares it, and how a file names it.

A file names a preset of `forbear.budgets.Budget`, with its parameters.
"""

from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, cast

from forbear.adapters import Record, check_positive_seconds, is_mapping
from forbear.budgets import Budget, ClientThrottle, TokenBucket
from forbear_simulate.scenario.fields import (
    ScenarioError,
    Section,
    count,
    duration,
    number,
    plain_number,
    refuse,
    rules,
    seconds,
    word,
)
from forbear_simulate.scenario.policies import refuse_key

if TYPE_CHECKING:
    from forbear.adapters import BudgetRule

PRESETS = ("brooker", "ratio", "grpc", "envoy", "google_sre", "finagle", "aws", "aws_until_2026")
"""The presets of `forbear.budgets.Budget`, by the names of its methods."""

_TEXTS = {"window": 'a time with a unit, such as "10s"'}
_RULE_CURE = "pass forbear.budgets.TokenBucket()"
_SHARES = ("client", "client", "process", "fleet")


class SharedBucket(Record):
    """The numbers of a SharedBudget: those of the bucket, and the window of what a process pays in."""

    __slots__ = ("capacity", "deposit", "window")

    capacity: float
    deposit: float
    window: float

    def __init__(self, capacity: float = 100, deposit: float = 0.1, window: float = 5) -> None:
        TokenBucket(capacity, deposit)
        check_positive_seconds("window", window)
        self._set(capacity=capacity, deposit=deposit, window=window)

    @classmethod
    def of(cls, budget: Any) -> "SharedBucket":
        """Return the numbers of a SharedBudget."""
        return cls(budget.rule.capacity, budget.rule.deposit, budget.window)


@dataclass(frozen=True, slots=True)
class ClientBudget(Section):
    """The retry budgets of the clients: the rule that they count by, and who shares the counters of one.

    `rule` is one of `forbear.budgets`, or a `Budget`, whose rule it then is. A `SharedBudget`
    has its bucket for the whole fleet. Each client is a process of it, or with `per="process"` each group of `clients`
    is. Its calls come to the processes by chance; processes in lock step get less.

    >>> from dataclasses import replace
    >>> from forbear.budgets import TokenBucket
    >>> clients, service = Clients(rate=80, count=20, attempt_timeout=1), Server(workers=5)
    >>> plain = Scenario(duration=30, clients=clients, service=service, windows=(Window(start=5, length=5),))
    >>> budget = ClientBudget(TokenBucket())
    >>> [round(simulate(each).figures.amplification, 1) for each in (plain, replace(plain, budget=budget))]
    [3.4, 1.1]
    """

    KEY: ClassVar[str] = "budget"

    rule: "BudgetRule | Budget | SharedBucket" = field(default_factory=TokenBucket)
    per: str = word("who shares one budget: nobody, the clients of a process, or the whole fleet", *_SHARES)
    clients: int = count("the number of clients of a process, for budgets per process", 10)

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        rule: Any = self.rule
        if isinstance(rule, Budget) and rule.is_shared:
            rule = SharedBucket.of(rule)
        if isinstance(rule, SharedBucket):
            if self.per == "client":
                refuse("budget.per", "fleet or process for a SharedBudget", self.per, 'pass per="fleet"')
            object.__setattr__(self, "rule", rule)
            return
        if isinstance(rule, Budget) and rule.is_custom and not rule.by_host:
            refuse("budget.rule", "a rule or a Budget that counts by one, not by methods of its own", rule, _RULE_CURE)
        try:
            counts = (rule if isinstance(rule, Budget) else Budget(rule)).rule
        except TypeError:
            refuse("budget.rule", "a rule of a forbear.budgets.Budget", rule, _RULE_CURE)
        object.__setattr__(self, "rule", counts)

    @property
    def counts(self) -> "BudgetRule | SharedBucket":
        """The rule, which is no Budget here any more."""
        return cast("BudgetRule | SharedBucket", self.rule)

    def group(self, count: int) -> int:
        """Return how many of `count` clients share one budget, or are one process of a SharedBudget."""
        if isinstance(self.rule, SharedBucket) and self.per == "fleet":
            return 1
        return {"client": 1, "process": self.clients, "fleet": max(count, 1)}[self.per]


@dataclass(frozen=True, slots=True)
class Throttling(Section):
    """Google SRE's client throttle, which refuses first attempts, too, the more the service refuses itself.

    >>> clients, outage = Clients(rate=80, count=10), Window(kind="refuse", length=10)
    >>> scenario = Scenario(duration=10, clients=clients, windows=(outage,), throttle=Throttling())
    >>> simulate(scenario).figures.budget_refusals > 0
    True
    """

    KEY: ClassVar[str] = "throttle"

    k: float = number("how many requests for each accepted one a client sends", 2.0, above=1)
    window: float = seconds("how long requests and accepts count", 120.0)
    per: str = word("who shares one throttle: nobody, the clients of a process, or the whole fleet", *_SHARES)
    clients: int = count("the number of clients of a process, for throttles per process", 10)
    least: int = count("how many requests there are before anything is refused", 10, least=0)

    @property
    def budget(self) -> ClientBudget:
        """The throttle as budgets, which count by `forbear.budgets.ClientThrottle`."""
        return ClientBudget(ClientThrottle(self.k, self.window, self.least), self.per, self.clients)


def budget_of(key: str, raw: Any) -> ClientBudget | None:
    """Return the budget of a preset's name, None for "none", or the budget of a table.

    A table has the name as `preset`, the parameters of that preset, `per` and `clients`. Without `preset`, it is the
    first one of `PRESETS` that has all of the parameters. Raises ScenarioError, with `key`, for anything else.
    """
    if raw == "none":
        return None
    table = dict(raw) if is_mapping(raw) else {"preset": raw}
    shared: dict[str, Any] = {}
    for name, rule in rules(ClientBudget).items():
        if name in table:
            shared[name] = rule.read(f"{key}.{name}", table.pop(name))
            rule.check(f"{key}.{name}", shared[name])
    preset = table.pop("preset", None) if "preset" in table else _preset_with(set(table))
    if preset not in PRESETS:
        name = f"{key}.preset" if is_mapping(raw) else key
        refuse(name, "the name of a budget", preset, f"write one of {', '.join(PRESETS)} or none")
    known = _parameters(preset)
    values = {}
    for name, value in table.items():
        if name not in known:
            refuse_key(f"{key}.{name}", value, (*known, "preset", *rules(ClientBudget)))
        values[name] = duration(value) if name in _TEXTS else plain_number(value)
        if values[name] is None:
            refuse(f"{key}.{name}", _TEXTS.get(name, "a number"), value, "correct the value")
    try:
        budget = getattr(Budget, preset)(**values)
    except (TypeError, ValueError) as error:  # "`ratio` must be positive, got 0"
        raise ScenarioError(f"{error} in `{key}`; change that value") from None
    return ClientBudget(budget, **shared)


def _preset_with(names: set[str]) -> str:
    """Return the first preset that has all of these parameters, "brooker" if none has."""
    return next((preset for preset in PRESETS if names <= set(_parameters(preset))), PRESETS[0])


def _parameters(preset: str) -> tuple[str, ...]:
    return tuple(signature(getattr(Budget, preset)).parameters)
