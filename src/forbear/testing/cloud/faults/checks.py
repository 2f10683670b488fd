"""Check parameters; each error names the parameter, the rule and the value."""

import math
from collections.abc import Collection


def whole(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return `value` if it is a whole number from `minimum` to `maximum` (None: without limit)."""
    rule = f"a whole number of at least {minimum}" if maximum is None else f"a whole number from {minimum} to {maximum}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"`{name}` must be {rule}, got {value!r}")
    return value


def number(name: str, value: object, *, maximum: float = math.inf) -> float:
    """Return `value` as a float if it is a finite number from 0 to `maximum`."""
    rule = "a number of at least 0" if maximum == math.inf else f"a number from 0 to {maximum:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    if not (0 <= value <= maximum and math.isfinite(value)):
        raise ValueError(f"`{name}` must be {rule}, got {value!r}")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return value


def optional_text(name: str, value: object) -> str | None:
    """Return `value` if it is None or a string that is not empty."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string or None, got {value!r}")
    if value == "":
        raise ValueError(f"`{name}` must not be empty; leave it out to match everything")
    return value


def one_of(name: str, value: object, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the `allowed` words."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string, got {value!r}")
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(sorted(allowed))}; got {value!r}")
    return value
