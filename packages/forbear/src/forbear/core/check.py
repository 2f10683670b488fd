"""Check numbers, flags and keywords from users; every error text names the parameter, the rule and the value.

`shown` formats values for error texts, and `is_mapping` and `is_list` test types.
"""

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


INFINITY = float("inf")
LARGEST = 1.7976931348623157e308  # sys.float_info.max; a larger whole number has no float


def shown(value: object) -> str:
    """Return the repr of a value for an error text, cut after 200 characters, with "..." if it is cut.

    If `repr` raises, as for whole numbers of more than 4300 digits, the text names the type instead.

    >>> len(shown_value("a" * 1000))
    203
    """
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__qualname__} that cannot be shown"
    return text if len(text) <= 200 else f"{text[:200]}..."


def list_values(values: "Any", rule: str) -> "tuple[Any, ...]":
    """Return a text, or several values, as a tuple; TypeError with the text of the `rule` for anything else."""
    if isinstance(values, str):
        return (values,)
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{rule}; got {shown(values)}")
    return tuple(values)


_NUMBERS = (int, float)  # a constant: the union `int | float` would be built again for each value


def in_seconds(value: "Any") -> "Any":
    """Return the seconds of a timedelta; any other value is returned as it is, for the checks that follow."""
    if isinstance(value, _NUMBERS) or value is None:
        return value
    import sys

    module = sys.modules.get("datetime")  # expensive to import, and no value has this type before
    return value.total_seconds() if module is not None and isinstance(value, module.timedelta) else value


def positive_seconds(name: str, value: object, *, none: str | None = None) -> None:
    """Raise TypeError if `value` is no number, and ValueError if it is not positive and finite.

    A bool and NaN count as no numbers. `name` is the parameter's name for the error text. None is accepted only if
    `none` is a text, which says in the error what None means ("no limit").

    >>> check_positive_seconds("timeout", -5)
    Traceback (most recent call last):
        ...
    ValueError: `timeout` must be positive and finite, got -5
    """
    if type(value) is int and 0 < value < 1_000_000:
        return  # the common case is quick, since policies may be made for each call
    if value is not None or none is None:
        alternative = f" or None ({none})" if none is not None else ""
        _finite(name, value, f"a number of seconds{alternative}", f"positive and finite{alternative}", above=0)


def seconds(name: str, value: object) -> None:
    """Raise TypeError if `value` is no number, and ValueError if it is negative or infinite.

    A bool and NaN count as no numbers. `name` is the parameter's name for the error text.
    """
    if type(value) is not int or not 0 <= value < 1_000_000:
        _finite(name, value, "a number of seconds", "zero or more and finite", least=0)


def positive(name: str, value: object, *, what: str = "a number") -> None:
    """Raise TypeError if `value` is no number, and ValueError if it is not positive and finite.

    A bool and NaN count as no numbers. In the error text, `name` is the parameter's name and `what` its kind.
    """
    _finite(name, value, what, "positive and finite", above=0)


def at_least(name: str, value: object, least: float, *, what: str = "a number", whole: bool = False) -> None:
    """Raise TypeError if `value` is no number, and ValueError if it is below `least` or infinite.

    A bool and NaN count as no numbers. With `whole`, the number must be an int, of any size. In the error text, `name`
    is the parameter's name and `what` its kind.

    >>> check_at_least("attempts", 0, 1)
    Traceback (most recent call last):
        ...
    ValueError: `attempts` must be 1 or more and finite, got 0
    """
    if type(value) is int and least <= value < 1_000_000:
        return  # as in `positive_seconds`
    if whole and not isinstance(value, int):
        raise TypeError(f"`{name}` must be {what}, got {shown(value)}")
    rule = f"{least} or more{'' if whole else ' and finite'}"
    _finite(name, value, what, rule, least=least, most=INFINITY if whole else LARGEST)


def flag(name: str, value: "Any", *, none: str | None = None) -> "Any":
    """Return `value`; raise TypeError unless it is True or False: a word such as "never" would count as true.

    None is accepted only if `none` is a text, which says in the error what None means.
    """
    if value is not True and value is not False and (value is not None or none is None):
        alternative = f" or None ({none})" if none is not None else ""
        raise TypeError(f"`{name}` must be True{',' if none else ' or'} False{alternative}, got {shown(value)}")
    return value


def _finite(
    name: str,
    value: object,
    kind: str,
    rule: str,
    *,
    above: float = -INFINITY,
    least: float = -INFINITY,
    most: float = LARGEST,
) -> None:
    """Raise TypeError if `value` is no number, ValueError unless it is above `above` and from `least` to `most`.

    A bool and NaN are no numbers. By default every finite number passes. `kind` and `rule` say in the texts which type
    and which range `name` must have.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:  # NaN differs from itself
        raise TypeError(f"`{name}` must be {kind}, got {shown(value)}")
    if not (above < value and least <= value <= most):
        raise ValueError(f"`{name}` must be {rule}, got {shown(value)}")


def is_mapping(value: "Any") -> bool:
    """Return whether a value of unknown type is a mapping.

    >>> is_mapping({"a": 1}), is_mapping([("a", 1)])
    (True, False)
    """
    return isinstance(value, Mapping)


def is_list(value: "Any") -> bool:
    """Return whether a value of unknown type is a list.

    >>> is_list([1, 2]), is_list((1, 2))
    (True, False)
    """
    return isinstance(value, list)


_SHORTEST = 8
_SMALLEST = 10**9


def lasting_text(value: object) -> str | None:
    """Return the text of a value that is long enough not to be equal to another by chance, None for any other.

    Those are exact texts, bytes and UUIDs of at least 8 characters, and numbers from 10^9 on.
    """
    if type(value) is str and len(value) >= _SHORTEST and value != "*":
        return value
    if type(value) is bytes and len(value) >= _SHORTEST:
        return value.decode("latin-1")
    if type(value).__name__ == "UUID" and type(value).__module__ == "uuid":  # whose import would take time
        return str(value)
    return str(value) if type(value) is int and value >= _SMALLEST else None


_OURS = {
    theirs: ours
    for ours, names in {
        "attempts": "max_attempts max_retries max_tries num_retries retries stop_max_attempt_number times total tries",
        "backoff": "backoff_factor interval retry_delay sleep wait wait_time",
        "initial": "initial_delay min min_wait wait_initial wait_min",
        "jitter": "wait_jitter",
        "maximum": "max max_backoff max_delay max_value max_wait wait_max",
        "multiplier": "base exp_base exponential_base factor wait_exp_base",
        "on": "errors exception exceptions giveup predicate retry retry_on retry_on_exception status status_codes "
        "status_forcelist statuses",
        "on_event": "after before before_sleep callback log logger on_backoff on_error on_retry",
        "on_give_up": "default on_giveup retry_error_callback",
        "on_result": "retry_on_result",
        "repeatable": "idempotent",
        "seconds": "delay",
        "timeout": "deadline max_time",
        "": "reraise",
    }.items()
    for theirs in names.split()
}
"""The keywords of other retry libraries, and what they are called here; an empty text: forbear always does so."""

STATUSES = "statuses are read from errors: write on=forbear.transient, and call response.raise_for_status()"
"""The cure for those who list statuses."""

_OF_EXPONENTIAL = ("initial", "multiplier", "maximum", "jitter")


def find_similar(name: str, known: "Iterable[str]", likeness: float = 0.6) -> str | None:
    """Return the `known` name that is nearest to a wrong one, None if none is near; `likeness` is from 0 to 1."""
    from difflib import get_close_matches  # costs more to import than it is worth before an error

    return next(iter(get_close_matches(name, tuple(known), 1, likeness)), None)


def suggest(name: str, known: "Iterable[str]") -> str:
    """Return words that suggest the `known` name which is nearest to a wrong one, to end a text; "" if none is near."""
    near = find_similar(name, known)
    return "" if near is None else f'; did you mean "{near}"?'


def refuse_unknown(function: str, unknown: "Iterable[str]", known: "Sequence[str]") -> None:
    """Raise TypeError if there are `unknown` keywords; the text names the first one and the `known` one to write.

    `function` is the name of the function or class that got them.
    """
    for name in unknown:
        ours = _OURS.get(name, name)
        if ours == "":
            cure = "leave it out, because the last error is always raised"
        elif ours in known:
            counts = name == "total" or "retries" in name
            cure = f"write `{ours}`" + (", which counts the first call, too: add 1" if counts else "")
            if ours == "on" and "status" in name:
                cure = STATUSES
            elif ours == "on_event" and "log" in name:
                cure = 'leave it out, because the logger "forbear" gets a line for each retry'
        elif ours in _OF_EXPONENTIAL and "backoff" in known:
            cure = f"write backoff=forbear.Exponential({ours}=...)"
            cure += ", or `timeout` for the whole run" if name == "max_delay" else ""
        else:
            near = find_similar(name, known)
            cure = f"it takes {', '.join(known)}" if near is None else f"did you mean `{near}`?"
        raise TypeError(f"`{function}` takes no `{name}`: {cure}")
