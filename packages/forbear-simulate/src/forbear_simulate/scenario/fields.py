"""The fields of a scenario: each one knows its unit, its meaning, its rule, and how to read it from a file.

A value in Python is a number of seconds, or of calls per second. The same value in a file is a text with a unit, such
as "50ms" or "100/s", so that a reader cannot mistake it.
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import Any, ClassVar, NoReturn

from forbear.adapters import parse_duration, shown_value

_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LARGEST_COUNT = 1_000_000_000
_RATE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)/(s|m|h|d)", re.ASCII)


class ScenarioError(ValueError):
    """A wrong value in a scenario. Its text is one line: the key, the rule, the value and the cure.

    Example: see `read_mapping`.
    """


def refuse(key: str, rule: str, value: object, cure: str) -> NoReturn:
    """Raise the ScenarioError for `value` under `key`."""
    raise ScenarioError(f"`{key}` must be {rule}, got {shown_value(value)}; {cure}")


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The rule of one field: its `unit` and meaning (`text`) for the docs, `check` and `read`.

    `check(key, value)` raises ScenarioError for a value that the field cannot have. `read(key, raw)` returns the value
    of what a file or an option says, before the check.
    """

    unit: str
    text: str
    check: Callable[[str, Any], None]
    read: Callable[[str, Any], Any]
    words: tuple[str, ...] = ()
    """The values that a field of words may have."""


@dataclass(frozen=True, slots=True)
class Section:
    """The base of the sections of a scenario: frozen, and checked by the rules of its fields."""

    KEY: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, rule in rules(type(self)).items():
            rule.check(f"{self.KEY}.{name}" if self.KEY else name, getattr(self, name))


def rules(section: type[Section]) -> dict[str, FieldRule]:
    """Return the rules of the fields of a section by name; fields that hold sections have none."""
    return {item.name: item.metadata["rule"] for item in fields(section) if "rule" in item.metadata}


def seconds(text: str, default: float | None, *, zero: bool = False, none: str = "") -> Any:
    """Make a field in seconds, more than zero, or from zero on with `zero`. With `none`, None is allowed and says that.

    A file has a text with a unit: "50ms", "1m30s", or "none".
    """
    rule = f"{'zero or more' if zero else 'more than zero'} seconds{f' or none ({none})' if none else ''}"
    cure = 'write a number with a unit, such as "50ms", "10s" or "1m30s"'
    return _field("seconds", text, default, rule, cure, duration, least=0, above=not zero, none=none)


def rate(text: str, default: float | None, *, zero: bool = True, none: str = "") -> Any:
    """Make a field in calls per second, from zero on, or more than zero. With `none`, None is allowed and says that.

    A file has a text with a unit: "100/s" or "90/m", or "none".
    """
    cure = 'write a number with a unit, such as "100/s"'
    rule = f"{'zero or more' if zero else 'more than zero'} calls per second{f' or none ({none})' if none else ''}"
    return _field("calls per second", text, default, rule, cure, parse_rate, least=0, above=not zero, none=none)


def count(text: str, default: int | None, *, least: int = 1, none: str = "") -> Any:
    """Make a field for a whole number of at least `least`; None is allowed if `none` says what it means."""
    rule = f"a whole number of at least {least}{f' or none ({none})' if none else ''}"
    cure = f"write {max(least, 1)} or more, up to {_LARGEST_COUNT}"
    return _field(
        "count", text, default, rule, cure, plain_number, least=least, most=_LARGEST_COUNT, none=none, whole=True
    )


def number(text: str, default: float, *, above: float = 0) -> Any:
    """Make a field without a unit: a number of more than `above`."""
    return _field(
        "number", text, default, f"a number of more than {above}", "write 2.5", plain_number, least=above, above=True
    )


def share(text: str, default: float) -> Any:
    """Make a field that is a share, from 0 to 1."""
    return _field("share", text, default, "a share from 0 to 1", "write 0.05 for 5 %", plain_number, least=0, most=1)


def flag(text: str, default: bool) -> Any:
    """Make a field that is true or false."""

    def check(key: str, value: object) -> None:
        if not isinstance(value, bool):
            refuse(key, "true or false", value, "write true or false")

    def read(key: str, raw: Any) -> Any:
        return {"true": True, "false": False}.get(raw, raw) if isinstance(raw, str) else raw

    return field(default=default, metadata={"rule": FieldRule("flag", text, check, read)})


def word(text: str, default: str, *words: str) -> Any:
    """Make a field that has one of these words."""

    def check(key: str, value: object) -> None:
        if value not in words:
            refuse(key, f"one of {', '.join(words)}", value, f"write {default!r} for the usual case")

    return field(default=default, metadata={"rule": FieldRule("word", text, check, lambda _, raw: raw, words)})


def _field(
    unit: str,
    text: str,
    default: float | None,
    rule: str,
    cure: str,
    read: Callable[[Any], Any],
    *,
    least: float,
    most: float = inf,
    above: bool = False,
    none: str = "",
    whole: bool = False,
) -> Any:
    """Make a field for a number from `least` (exclusive with `above`) to `most`; infinity never passes."""

    def check(key: str, value: Any) -> None:
        if value is None and none:
            return
        if not _is_within(value, least, most, whole=whole) or (above and value == least):
            refuse(key, rule, value, cure)

    def read_value(key: str, raw: Any) -> Any:
        if none and raw == "none":
            return None
        value = read(raw)
        if value is None:
            refuse(key, rule, raw, cure)
        return value

    default_value: Any = MISSING if default is None and not none else default
    return field(default=default_value, metadata={"rule": FieldRule(unit, text, check, read_value)})


def _is_within(value: Any, least: float, most: float, *, whole: bool) -> bool:
    """Return whether a value is a finite number from `least` to `most`; a bool is none, nor a float if `whole`."""
    return type(value) in ((int,) if whole else (int, float)) and least <= value <= most and value != inf


def duration(raw: object) -> float | None:
    """Return the seconds of a text with units, None for anything else."""
    return parse_duration(raw) if isinstance(raw, str) else None


def parse_rate(raw: object) -> float | None:
    """Return the rate of a text with a unit, in calls per second; None for anything else."""
    match = _RATE.fullmatch(raw) if isinstance(raw, str) else None
    return float(match[1]) / _PERIODS[match[2]] if match else None


def plain_number(raw: object) -> object:
    """Return a number as it is, and that of a text (options are texts); None for anything else."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, str):
        try:
            return int(raw) if raw.isascii() and raw.isdigit() else float(raw)
        except ValueError:
            return None
    return raw if isinstance(raw, int | float) else None
