"""The reference page of scenarios: every key of a scenario file with its unit, and every figure of an outcome."""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from inspect import getdoc, signature
from typing import Any

from docs.generate.markdown import code, codes, table, text
from forbear.run.budget import Budget
from forbear_simulate.analysis.figures import figure_rules
from forbear_simulate.scenario.budgets import PRESETS, ClientBudget
from forbear_simulate.scenario.fields import FieldRule, Section, rules
from forbear_simulate.scenario.policies import LIMITS, WAITS
from forbear_simulate.scenario.reading import LISTS, TABLES
from forbear_simulate.scenario.scenario import Layer, Scenario

_UNITS = {"flag": "`true`, `false`"}
_SECONDS = ((3600, "h"), (60, "m"), (1, "s"), (0.001, "ms"), (1e-6, "us"))


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield from ("# Scenarios: reference", "")
    yield from text(
        """`make reference` generates this page from the code of forbear. Do not edit it by hand. [Simulate a
        fleet](../simulate.md) explains how to use a scenario. It is a TOML file, or a JSON file with the same keys.""",
        """A time is a text with a unit: `us`, `ms`, `s`, `m`, `h` or `d`, such as `"50ms"` or `"1m30s"`. A rate is a
        number per time, such as `"100/s"` or `"90/m"`. Every key has a default. An unknown key, a value without its
        unit and an impossible value are errors that say what to write.""",
    )
    yield from _section("The scenario", Scenario)
    for key, section in TABLES.items():
        yield from _section(f"`[{key}]`", section)
    yield from ("## `policy`", "")
    yield from text(
        """`policy` is a key of `[clients]` and of `[[layers]]`. It is a name, such as `"iam"` or `"mobile"`, as in
        [`forbear schedule`](../cli.md#profiles), or a table of changes: `policy = { name = "iam", attempts = 3 }`. The
        changes are:""",
    )
    yield from table(("key", "value"), ((code(name), rule) for name, (_, rule) in (LIMITS | WAITS).items()))
    yield from ("## `budget`", "")
    yield from text(
        """`budget` is a key of the scenario and of `[[layers]]`. It is the name of a budget, `"none"`, or a table with
        the name as `preset` and the parameters of that budget: `budget = { preset = "ratio", ratio = 0.1, per =
        "fleet" }`. The names are those of `forbear.budgets.Budget`:""",
    )
    yield from table(
        ("name", "parameters with defaults"),
        ((code(name), _parameters(name)) for name in PRESETS),
    )
    yield from text("Two more keys say who shares one budget:")
    yield from _keys(ClientBudget)
    for key, section in LISTS.items():
        yield from _section(f"`[[{key}]]`", section)
    yield from ("## Figures", "")
    yield from text("These are the figures of an outcome (`outcome.figures`), as means over all runs.")
    yield from table(
        ("figure", "unit", "meaning"),
        ((code(name), rule.unit, rule.text) for name, rule in figure_rules().items()),
    )


def _section(title: str, section: type[Section]) -> Iterator[str]:
    yield from (f"## {title}", "")
    parts = (getdoc(section) or "").split("\n\n")  # examples and errors are for programs in Python
    yield from text(*(part.partition(" Example:")[0] for part in parts if not part.startswith(("Raises ", ">>> "))))
    yield from _keys(section)
    if section is Layer:
        yield from text("`policy` and `budget` are as above.")


def _keys(section: type[Section]) -> Iterator[str]:
    """Yield the table of the keys of a section, without those that are sections or lists."""
    defaults = {item.name: None if item.default is MISSING else item.default for item in fields(section)}
    yield from table(
        ("key", "meaning", "unit", "default"),
        (
            (
                code(name),
                rule.text,
                codes(rule.words) or _UNITS.get(rule.unit, rule.unit),
                code(_written(defaults[name], rule)),
            )
            for name, rule in rules(section).items()
        ),
    )


def _written(value: Any, rule: FieldRule) -> str:
    """Return a default as a file has it."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if rule.unit == "seconds":
        return f'"{_time(value)}"'
    if rule.unit == "calls per second":
        return f'"{value:g}/s"'
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _time(value: float) -> str:
    size, unit = next((pair for pair in _SECONDS if value >= pair[0]), (1, "s"))
    return f"{value / size:g}{unit}"


def _parameters(preset: str) -> str:
    """Return the parameters of a budget and their defaults."""
    parameters = signature(getattr(Budget, preset)).parameters
    texts = (
        f"{name} = " + (f'"{_time(one.default)}"' if name == "window" else f"{one.default:g}")
        for name, one in parameters.items()
    )
    return codes(texts) or "none"
