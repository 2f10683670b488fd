"""Scenarios with one value changed, by its key: a limit or wait of the policy, the budget, or any other number."""

from dataclasses import replace
from typing import Any

from forbear import Exponential
from forbear.adapters import JITTERS, Record, field_names
from forbear_simulate.scenario.budgets import ClientBudget, Throttling, budget_of
from forbear_simulate.scenario.fields import ScenarioError, Section, refuse, rules
from forbear_simulate.scenario.scenario import Scenario

_LIMITS = ("attempts", "timeout")
_WAITS = ("initial", "multiplier", "maximum", "jitter", "spread")
_POLICY = "clients.policy"

RANGES: dict[str, tuple[float, float]] = {
    "attempts": (1, 10),
    "timeout": (1.0, 600.0),
    "initial": (0.05, 30.0),
    "multiplier": (1.1, 4.0),
    "maximum": (1.0, 600.0),
    "spread": (0.05, 30.0),
    "ratio": (0.001, 1.0),
    "deposit": (0.001, 1.0),
    "token_ratio": (0.001, 1.0),
    "share": (0.01, 0.99),
    "capacity": (1.0, 1000.0),
    "max_tokens": (3.0, 1000.0),
    "floor": (0.01, 100.0),
    "k": (1.05, 10.0),
    "attempt_timeout": (0.1, 60.0),
}
"""The ranges of a search for keys that have one of their own, by the last part. Times are in seconds."""


def full_key(key: str) -> str:
    """Return a key with its tables: that of a limit or wait of the policy may lack them ("maximum")."""
    return f"{_POLICY}.{key}" if key in (*_LIMITS, *_WAITS) else key


def is_whole(scenario: Scenario, key: str) -> bool:
    """Return whether only whole numbers make sense under a full key."""
    *path, name = key.split(".")
    section = _section(scenario, path)
    fields = {} if section is None else rules(type(section))
    return key == f"{_POLICY}.attempts" or (name in fields and fields[name].unit == "count")


def usual_range(scenario: Scenario, key: str) -> tuple[float, float] | None:
    """Return the range that a search under a full key tries if it gets none, None if there is none.

    Without one in `RANGES`, it is from a tenth of the scenario's own number to ten times as much.
    """
    *path, name = key.split(".")
    section = _section(scenario, path)
    fields = {} if section is None else rules(type(section))
    number = getattr(section, name) if name in fields else None
    if name in RANGES or not isinstance(number, int | float) or number <= 0:
        return RANGES.get(name)
    if fields[name].unit == "count":
        return max(number // 10, 1), number * 10
    return number / 10, min(number * 10, 1) if fields[name].unit == "share" else number * 10


def words(key: str) -> tuple[str, ...] | None:
    """Return the words that a full key may have, None if it has numbers."""
    return JITTERS if key == f"{_POLICY}.jitter" else None


def with_value(scenario: Scenario, key: str, value: Any) -> Scenario:
    """Return the scenario with another value under a full key.

    Without a budget, a key of one ("budget.ratio") adds the preset that has it, for each client. Raises ScenarioError
    for an unknown key, and for a value that it cannot have.
    """
    *path, name = key.split(".")
    try:
        if path == ["clients", "policy"] and name in (*_LIMITS, *_WAITS):
            return _with_policy(scenario, name, value)
        if path == ["budget"] and name not in rules(ClientBudget):
            return replace(scenario, budget=_with_rule(scenario.budget, name, value))
        section = _section(scenario, path)
        if section is not None and name in rules(type(section)):
            change: dict[str, Any] = {name: value}
            return replace(scenario, **({path[0]: replace(section, **change)} if path else change))
    except (TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"{error} in `{'.'.join(path)}`; change that value") from None
    return refuse("key", "a number of the scenario, or jitter", key, "write attempts, maximum, jitter or budget.ratio")


def _with_policy(scenario: Scenario, name: str, value: Any) -> Scenario:
    policy = scenario.clients.policy
    if name in _LIMITS:
        policy = policy.with_limits(policy.limits.replace(**{name: value}))
    else:
        backoff = policy.backoff if isinstance(policy.backoff, Exponential) else Exponential()
        policy = policy.with_backoff(backoff.replace(**{name: value}))
    return replace(scenario, clients=replace(scenario.clients, policy=policy))


def _with_rule(budget: ClientBudget | None, name: str, value: Any) -> ClientBudget:
    """Return a budget whose rule has another parameter; a rule without it is replaced by the preset that has it."""
    if budget is not None and isinstance(budget.counts, Record) and name in field_names(budget.counts):
        return replace(budget, rule=budget.counts.replace(**{name: value}))
    other = budget_of("budget", {name: value}) or ClientBudget()
    return other if budget is None else replace(budget, rule=other.rule)


def _section(scenario: Scenario, path: list[str]) -> Section | None:
    """Return the section of a scenario at a path, the default one if the scenario has none; None for no section."""
    sections: dict[tuple[str, ...], Section] = {
        (): scenario,
        ("clients",): scenario.clients,
        ("service",): scenario.service,
        ("budget",): scenario.budget or ClientBudget(),
        ("throttle",): scenario.throttle or Throttling(),
    }
    return sections.get(tuple(path))
