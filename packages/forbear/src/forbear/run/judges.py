"""Check what users pass to a policy: its judges of errors and values, its listeners, and what they vouch for.

The slots are here, too: lists of one function each by which the layers below the services call them. `forbear` fills
them; each function loads what it needs when it is first called.
"""

from types import UnionType

from forbear.core import check
from forbear.core.record import Record
from forbear.run.functions import check_takes, refuse_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

load_judge: "list[Callable[[], Any]]" = [lambda: None]
"""Returns the judge of errors of functions, a `Judge` of `run/judge_slot.py`, None for none."""

declined: "list[Callable[[Exception, Any, str], None] | None]" = [None]
"""Is called with each error which a policy declined at the first attempt, the policy and the name of the run."""

listeners: "list[Callable[[], tuple[Callable[[Any], object], ...]]]" = [tuple]
"""Returns the process's listeners; each run calls it at its first failure."""

name_checks: "list[Callable[[str], None]]" = []
"""The checks of names in `safe`, of those who know the services: each raises ValueError for a name that is none."""

JUDGE = "judge by the error or the value alone"


class _Raise(Record):
    """The type of `RAISE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "RAISE"

    def __reduce__(self) -> str:  # type: ignore[override] # the name of the global: it stays the same object
        return "RAISE"


RAISE = _Raise()
"""The default of `on_give_up`: raise the last error, or return the last value. None would be a value."""


def types_of(types: "Any", on: "Any") -> "Any":
    """Return what `forbear.retry(*types, on=on)` retries: the types and forbear's judges, or `on` without them.

    Raises TypeError if both or neither are passed, and for any other positional argument, such as a function that
    somebody decorates with `@forbear.retry`.
    """
    if not types:
        if on is None:
            raise TypeError(
                "`retry` needs the errors to retry, as in forbear.retry(OSError) or forbear.retry(forbear.transient)"
            )
        return on
    if on is not None:
        raise TypeError(
            f"`on` must not be passed together with positional exception types: list them all in one place, got {on!r}"
        )
    refuse_foreign("on", types[0])
    kind: Any
    for kind in types:
        wrong: object = kind
        if isinstance(kind, Record) or (isinstance(kind, type) and issubclass(kind, BaseException)):
            continue
        if len(types) == 1 and callable(kind):  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(
                "`retry` needs the errors to retry before it can decorate: write @forbear.retry(OSError); "
                f"a function that judges errors is passed as on=, got {kind!r}"
            )
        cure = _cure_of(wrong, "write them one by one: retry(OSError, ValueError)")
        cure = f"; write attempts={wrong}" if type(wrong) is int and 0 < wrong < 100 else cure
        raise TypeError(
            f"positional arguments of `retry` must be exception types, as in retry(OSError), got {kind!r}{cure}"
        )
    return types[0] if len(types) == 1 else types


_SEVERAL = (tuple, list, set, frozenset)


def _cure_of(value: "Any", several: str) -> str:
    """Return the end of an error about a `value` that is no type of errors; `several` is the cure for many in one."""
    is_many = type(value) in _SEVERAL
    if any(type(each) is int and each >= 100 for each in (value if is_many else (value,))):
        return f"; {check.STATUSES}"
    return f"; {several}" if is_many or isinstance(value, UnionType) else ""


def make_judge(on: "Any") -> "Any":
    """Return `on` in the form that a policy keeps: a type, a tuple of types, or a function.

    Raises TypeError for anything that is neither a subclass of Exception nor a sync function, nor a tuple of these;
    ValueError for an empty tuple.
    """
    if not isinstance(on, tuple):
        _check_part(on)
        return on
    listed: tuple[Any, ...] = on  # pyright: ignore[reportUnknownVariableType]
    if not listed:
        raise ValueError("`on` must list at least one exception type, got none")
    for part in listed:
        _check_part(part)
    types = tuple(part for part in listed if isinstance(part, type))
    judges = tuple(part for part in listed if not isinstance(part, type))
    if not judges:
        return types
    from forbear.run.answers import AnyOf  # few policies have both

    return AnyOf(types, judges)


def _check_part(on: "Any") -> None:
    """Raise TypeError if `on`, or a member of its tuple, is neither a subclass of Exception nor a sync function."""
    if isinstance(on, type):
        if not issubclass(on, BaseException):
            raise TypeError(f"`on` must list exception types, got {on!r}")
        if not issubclass(on, Exception):
            raise TypeError(f"`on` must list subclasses of Exception, got {on.__name__}, which ends programs or tasks")
        return
    refuse_foreign("on", on)
    if not callable(on):
        cure = _cure_of(on, "write a tuple: on=(OSError, ValueError)")
        raise TypeError(f"`on` must be exception types or a callable that judges an error, got {on!r}{cure}")
    refuse_async("`on`", on, JUDGE)
    check_takes("`on`", on, "error")


_FOREIGN = frozenset({"tenacity", "backoff", "stamina", "retrying"})
_OURS = {
    "stop_after_attempt": ("max_attempt_number", "attempts={}"),
    "stop_after_delay": ("max_delay", "timeout={}"),
    "stop_before_delay": ("max_delay", "timeout={}"),
    "wait_fixed": ("wait_fixed", "backoff=forbear.Constant({})"),
}
_CURES = {
    "on": "pass exception types, forbear.transient, or a function of the error",
    "stop": "pass attempts= and timeout= instead",
    "backoff": "pass forbear.Exponential(initial, multiplier, maximum) or forbear.Constant(seconds)",
    "delay": "pass backoff=forbear.Exponential(initial, multiplier, maximum) or forbear.Constant(seconds)",
    "key": "pass a function of the arguments, such as lambda order: order.key",
    "on_result": "pass a function of the value that returns True for a retry",
}


def refuse_foreign(parameter: str, value: object) -> None:
    """Raise TypeError for an object of another retry library: it is callable, and means something else here.

    The text says how forbear spells it.
    """
    kind = value if hasattr(value, "__qualname__") else type(value)
    library = str(getattr(kind, "__module__", None)).partition(".")[0]
    if library not in _FOREIGN:
        return
    name: str = getattr(kind, "__name__", "an object")
    attribute, ours = _OURS.get(name, ("", ""))
    theirs: object = getattr(value, attribute, None) if attribute else None
    cure = _CURES.get(parameter, "write it in forbear's terms") if theirs is None else f"write {ours.format(theirs)}"
    raise TypeError(f"`{parameter}` must not be {library}'s {name}: {cure}; docs/migrate.md has the whole table")


def check_callable(parameter: str, function: "Any", cure: str = JUDGE, argument: str = "") -> "Any":
    """Return `function`; raise TypeError if it is neither None nor a sync callable. `parameter` names it in the text.

    The text for an async function ends with the `cure`. If an `argument` is named, the function must take one.
    """
    if function is not None:
        refuse_foreign(parameter, function)
        if not callable(function):
            cure = f"; {_CURES[parameter]}" if parameter in _CURES else ""
            raise TypeError(f"`{parameter}` must be callable or None, got {function!r}{cure}")
        refuse_async(f"`{parameter}`", function, cure)
        if argument:
            check_takes(f"`{parameter}`", function, argument)
    return function


def check_on_give_up(name: str, value: "Any") -> "Any":
    """Return the value of `on_give_up`: any, but a function must take the last error."""
    if callable(value):
        check_takes(f"`{name}`", value, "error")
    return value


def check_on_result(name: str, value: "Any") -> "Any":
    """Return the value of `on_result`; TypeError for what is neither None nor a sync callable that judges values."""
    if getattr(value, "judges_errors", False):
        raise TypeError(
            f"`{name}` judges returned values, and this judges errors: pass it as `on`, and let the function raise, as "
            f"response.raise_for_status() does; got {value!r}"
        )
    return check_callable(name, value, argument="value")


def check_notified(parameter: str, listener: object) -> None:
    """Raise TypeError for a listener that is not callable or is async; `parameter` names it in the text."""
    if not callable(listener):
        raise TypeError(f"{parameter} must be callable with one event, got {listener!r}")
    refuse_async(parameter, listener, "use a plain function that passes the event on, such as to a queue or a new task")
    check_takes(parameter, listener, "event")


def check_listener(parameter: str, listener: "Any") -> "Any":
    """Return `listener`; raise TypeError if it is neither None nor a sync callable with one event."""
    if listener is not None:
        if not callable(listener):
            raise TypeError(f"`{parameter}` must be callable or None, got {listener!r}")
        check_notified(f"`{parameter}`", listener)
    return listener


CHOICES = {"unknown": ("repeat", "stop"), "enforce": ("stop", "warn")}
"""The values of the options about evidence; the first is the default, if no variable of the environment changes it."""


def check_choice(name: str, value: "Any") -> "Any":
    """Return the value of `unknown` or `enforce`; ValueError for one that is no choice."""
    choices = CHOICES[name]
    if value is not None and value not in choices:
        shown = " or ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"`{name}` must be {shown}, or None (the process's own), got {value!r}")
    return value


_VOUCHES = 'patterns such as "POST https://api.example.com/search", or names of commands, RPCs and operations'
"""The values of `safe`, as errors name them."""


def check_safe(name: str, value: "Any") -> "Any":
    """Return what the user vouches for, as a tuple of texts; patterns of requests are checked."""
    if value == ():
        return value
    listed: list[Any] = [value] if isinstance(value, str) else list(value) if hasattr(value, "__iter__") else []
    if not listed or not all(isinstance(text, str) and text for text in listed):
        raise TypeError(f"`{name}` must hold {_VOUCHES}, got {value!r}")
    from re import fullmatch  # only those who vouch get here

    from forbear.core.service import OperationSet
    from forbear.http.patterns import patterns

    patterns([text for text in listed if "://" in text], name)
    names = [text for text in listed if "://" not in text and not isinstance(text, OperationSet)]
    wrong = [text for text in names if not fullmatch(r"/?[\w.]+/(\w+|\*)|[\w.-]+( [\w-]+)?", text)]
    if wrong:
        raise ValueError(f"`{name}` must hold {_VOUCHES}, got {wrong[0]!r}")
    for check_name in name_checks:
        for text in names:
            check_name(text)
    return tuple(listed)


def check_known_apis(name: str, value: "Any") -> "Any":
    """Return the value of `apis` as a tuple; TypeError or ValueError for wrong ones."""
    if value == ():
        return value
    from forbear.http.api import check_apis  # only for those who know one

    return check_apis(value)
