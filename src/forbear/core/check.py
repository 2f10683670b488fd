"""Check numbers and flags from users; every error text names the parameter, the rule and the value."""

INFINITY = float("inf")
LARGEST = 1.7976931348623157e308  # sys.float_info.max; a larger whole number has no float


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # NaN differs from itself


def shown(value: object) -> str:
    """Return the repr of a value for an error text, cut after 200 characters; a value without one is described.

    Python refuses to format whole numbers of more than 4300 digits.
    """
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__qualname__} that cannot be shown"
    return text if len(text) <= 200 else f"{text[:200]}..."


def positive_seconds(name: str, value: object, *, none: str | None = None) -> None:
    """Raise an error unless `value` is a positive finite number of seconds, or None where `none` says what it means."""
    if value is None and none is not None:
        return
    if type(value) is int and 0 < value < 1_000_000:
        return  # the common case is quick, since policies may be made for each call
    alternative = f" or None ({none})" if none is not None else ""
    if not _is_number(value):
        raise TypeError(f"`{name}` must be a number of seconds{alternative}, got {shown(value)}")
    if not 0 < value <= LARGEST:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be positive and finite{alternative}, got {shown(value)}")


def seconds(name: str, value: object) -> None:
    """Raise an error unless `value` is a finite number of seconds from 0 on."""
    if type(value) is int and 0 <= value < 1_000_000:
        return
    if not _is_number(value):
        raise TypeError(f"`{name}` must be a number of seconds, got {shown(value)}")
    if not 0 <= value <= LARGEST:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be zero or more and finite, got {shown(value)}")


def at_least(name: str, value: object, least: float, *, what: str = "a number", whole: bool = False) -> None:
    """Raise an error unless `value` is a finite number from `least` on; with `whole`, a whole number of any size."""
    if type(value) is int and least <= value < 1_000_000:
        return  # as in `positive_seconds`
    if not _is_number(value) or (whole and not isinstance(value, int)):
        raise TypeError(f"`{name}` must be {what}, got {shown(value)}")
    if not least <= value or (not whole and value > LARGEST):  # type: ignore[operator]
        raise ValueError(f"`{name}` must be {least} or more{'' if whole else ' and finite'}, got {shown(value)}")


def flag(name: str, value: object) -> None:
    """Raise an error unless `value` is True or False: a word such as "never" would count as true."""
    if value is not True and value is not False:
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}")


def positive(name: str, value: object, *, what: str = "a number") -> None:
    """Raise an error unless `value` is a positive finite number."""
    if not _is_number(value):
        raise TypeError(f"`{name}` must be {what}, got {shown(value)}")
    if not 0 < value <= LARGEST:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be positive and finite, got {shown(value)}")
