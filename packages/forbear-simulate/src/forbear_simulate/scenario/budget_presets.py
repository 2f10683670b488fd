"""Find the budget that a scenario names: a preset of `forbear.Budget` with its parameters, and who shares one."""

from inspect import signature
from typing import Any

from forbear import Budget
from forbear.adapters import is_mapping
from forbear_simulate.scenario.fields import ScenarioError, duration, plain_number, refuse, rules
from forbear_simulate.scenario.policies import refuse_key
from forbear_simulate.scenario.scenario import ClientBudget

PRESETS = ("brooker", "ratio", "grpc", "envoy", "google_sre", "finagle", "aws", "aws_until_2026")
"""The presets of `forbear.Budget`, by the names of its methods."""

_TEXTS = {"window": 'a time with a unit, such as "10s"'}


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
