"""Checks of numbers given by users: every text names the parameter, the rule, the value and the cure."""

INFINITY = float("inf")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # NaN differs from itself


def positive_seconds(name: str, value: object, *, none: str | None = None) -> None:
    """Refuse all but a positive finite number of seconds (and None, where `none` says what it means)."""
    if value is None and none is not None:
        return
    alternative = f" or None ({none})" if none is not None else ""
    if not _is_number(value):
        raise TypeError(f"`{name}` must be a number of seconds{alternative}, got {value!r}")
    if not 0 < value < INFINITY:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be positive and finite{alternative}, got {value!r}")


def seconds(name: str, value: object) -> None:
    """Refuse all but a finite number of seconds that is zero or more."""
    if not _is_number(value):
        raise TypeError(f"`{name}` must be a number of seconds, got {value!r}")
    if not 0 <= value < INFINITY:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be zero or more and finite, got {value!r}")


def at_least(name: str, value: object, least: float, *, what: str = "a number", whole: bool = False) -> None:
    """Refuse all but a finite number (a whole one if `whole`) that is `least` or more."""
    if not _is_number(value) or (whole and not isinstance(value, int)):
        raise TypeError(f"`{name}` must be {what}, got {value!r}")
    if not least <= value < INFINITY:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be {least} or more{'' if whole else ' and finite'}, got {value!r}")


def flag(name: str, value: object) -> None:
    """Refuse all but True and False: a word such as "never" would count as true."""
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")


def positive(name: str, value: object, *, what: str = "a number") -> None:
    """Refuse all but a positive finite number."""
    if not _is_number(value):
        raise TypeError(f"`{name}` must be {what}, got {value!r}")
    if not 0 < value < INFINITY:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be positive and finite, got {value!r}")
