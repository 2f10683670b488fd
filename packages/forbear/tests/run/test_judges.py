"""The options of a policy are checked: each wrong value is refused with a text that says what to write instead."""

import pickle
from collections.abc import AsyncGenerator, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.core.service import OperationSet
from forbear.core.verdict import TRANSIENT
from forbear.run import judges
from forbear.run.answers import AnyOf
from forbear.run.judges import RAISE

HERE = __name__
ERRORS = "`retry` needs the errors to retry, as in forbear.retry(OSError) or forbear.retry(forbear.transient)"
TYPES = "positional arguments of `retry` must be exception types, as in retry(OSError), got"
MANY = "; write them one by one: retry(OSError, ValueError)"
TUPLE = "; write a tuple: on=(OSError, ValueError)"
STATUSES = "; statuses are read from errors: write on=forbear.transient, and call response.raise_for_status()"
NO_ON = "`on` must be exception types or a callable that judges an error, got"
TABLE = "docs/migrate.md has the whole table"


def judge(error: object) -> bool:
    """Judge an error."""
    return bool(error)


def takes_none() -> bool:
    """Take nothing."""
    return True


async def ajudge(error: object) -> bool:
    """Judge too late."""
    return bool(error)


async def agenerate(error: object) -> AsyncGenerator[object]:
    """Yield too late."""
    yield error


def foreign(module: str, name: str, **fields: object) -> Any:
    """Return an object as another retry library has: it can be called, and its type has this module and name."""
    made = type(name, (), {"__module__": module, "__call__": judge, **fields})()
    assert callable(made)
    return made


def foreign_function(module: str, name: str) -> Any:
    """Return a function as another retry library has it."""

    def function(*_: object) -> bool:
        return True

    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function


def must(option: str, got: object, cure: str = "") -> str:
    """Return the text for an option that is neither callable nor None."""
    return f"`{option}` must be callable or None, got {got!r}{cure}"


JUDGES_ERRORS: Any = SimpleNamespace(judges_errors=True)
ASYNC = "must not be async, because it is not awaited, got"
LIKE = "is called with 1 argument (error), got"
VOUCHES = 'patterns such as "POST https://api.example.com/search", or names of commands, RPCs and operations'
STOP = foreign("tenacity.stop", "stop_after_attempt", max_attempt_number=7)
WAIT = foreign_function("backoff._wait_gen", "expo")
LISTEN: Any = forbear.observe.listen


def retry(*types: Any, **options: Any) -> Callable[[], object]:
    """Return a call of `forbear.retry`."""
    return partial(forbear.retry, *types, **options)


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (retry(), TypeError, ERRORS),
    (
        retry(OSError, on=judge),
        TypeError,
        f"`on` must not be passed together with positional exception types: list them all in one place, got {judge!r}",
    ),
    (
        retry(judge),
        TypeError,
        (
            "`retry` needs the errors to retry before it can decorate: write @forbear.retry(OSError); a function that "
            f"judges errors is passed as on=, got {judge!r}"
        ),
    ),
    (retry(judge, OSError), TypeError, f"{TYPES} {judge!r}"),
    (retry(OSError, "x"), TypeError, f"{TYPES} 'x'"),
    (
        retry(int),
        TypeError,
        (
            "`retry` needs the errors to retry before it can decorate: write @forbear.retry(OSError); "
            f"a function that judges errors is passed as on=, got {int!r}"
        ),
    ),
    (retry(0), TypeError, f"{TYPES} 0"),
    (retry(1), TypeError, f"{TYPES} 1; write attempts=1"),
    (retry(99), TypeError, f"{TYPES} 99; write attempts=99"),
    (retry(100), TypeError, f"{TYPES} 100{STATUSES}"),
    (retry(True), TypeError, f"{TYPES} True"),
    (retry([429, 503]), TypeError, f"{TYPES} [429, 503]{STATUSES}"),
    (retry((5, 100)), TypeError, f"{TYPES} (5, 100){STATUSES}"),
    (retry((OSError, ValueError)), TypeError, f"{TYPES} {(OSError, ValueError)!r}{MANY}"),
    (retry({OSError}), TypeError, f"{TYPES} {{{OSError!r}}}{MANY}"),
    (retry(frozenset()), TypeError, f"{TYPES} frozenset(){MANY}"),
    (retry(OSError | ValueError), TypeError, f"{TYPES} {OSError | ValueError!r}{MANY}"),
    (
        retry(STOP),
        TypeError,
        "`on` must not be tenacity's stop_after_attempt: write attempts=7; " + TABLE,
    ),
    (retry(on=()), ValueError, "`on` must list at least one exception type, got none"),
    (retry(on=int), TypeError, f"`on` must list exception types, got {int!r}"),
    (retry(on=(OSError, int)), TypeError, f"`on` must list exception types, got {int!r}"),
    (
        retry(on=KeyboardInterrupt),
        TypeError,
        "`on` must list subclasses of Exception, got KeyboardInterrupt, which ends programs or tasks",
    ),
    (retry(on=5), TypeError, f"{NO_ON} 5"),
    (retry(on=503), TypeError, f"{NO_ON} 503{STATUSES}"),
    (retry(on=[OSError]), TypeError, f"{NO_ON} {[OSError]!r}{TUPLE}"),
    (retry(on=OSError | ValueError), TypeError, f"{NO_ON} {OSError | ValueError!r}{TUPLE}"),
    (retry(on=ajudge), TypeError, f"`on` {ASYNC} {HERE}.ajudge; judge by the error or the value alone"),
    (
        retry(on=takes_none),
        TypeError,
        f"`on` {LIKE} {HERE}.takes_none, which takes no arguments; it must be like `lambda error: ...`",
    ),
    (
        retry(on=WAIT),
        TypeError,
        "`on` must not be backoff's expo: pass exception types, forbear.transient, or a function of the error; "
        + TABLE,
    ),
    (retry(OSError, stop=5), TypeError, must("stop", 5, "; pass attempts= and timeout= instead")),
    (
        retry(OSError, delay=5),
        TypeError,
        must(
            "delay",
            5,
            "; pass backoff=forbear.Exponential(initial, multiplier, maximum) or forbear.Constant(seconds)",
        ),
    ),
    (
        retry(OSError, key="k"),
        TypeError,
        must("key", "k", "; pass a function of the arguments, such as lambda order: order.key"),
    ),
    (
        retry(OSError, on_result=5),
        TypeError,
        must("on_result", 5, "; pass a function of the value that returns True for a retry"),
    ),
    (
        retry(OSError, stop=ajudge),
        TypeError,
        f"`stop` {ASYNC} {HERE}.ajudge; judge by the failure, or set an event for forbear.stop_on",
    ),
    (
        retry(OSError, stop=takes_none),
        TypeError,
        (
            f"`stop` is called with 1 argument (failed), got {HERE}.takes_none, which takes no arguments; it must be "
            "like `lambda failed: ...`"
        ),
    ),
    (retry(OSError, delay=ajudge), TypeError, f"`delay` {ASYNC} {HERE}.ajudge; return the seconds at once"),
    (
        retry(OSError, delay=takes_none),
        TypeError,
        f"`delay` {LIKE} {HERE}.takes_none, which takes no arguments; it must be like `lambda error: ...`",
    ),
    (retry(OSError, key=ajudge), TypeError, f"`key` {ASYNC} {HERE}.ajudge; return the key at once"),
    (
        retry(OSError, on_result=agenerate),
        TypeError,
        f"`on_result` {ASYNC} {HERE}.agenerate; judge by the error or the value alone",
    ),
    (
        retry(OSError, on_result=takes_none),
        TypeError,
        (
            f"`on_result` is called with 1 argument (value), got {HERE}.takes_none, which takes no arguments; it must "
            "be like `lambda value: ...`"
        ),
    ),
    (
        retry(OSError, on_result=JUDGES_ERRORS),
        TypeError,
        (
            "`on_result` judges returned values, and this judges errors: pass it as `on`, and let the function "
            f"raise, as response.raise_for_status() does; got {JUDGES_ERRORS!r}"
        ),
    ),
    (
        retry(OSError, on_give_up=takes_none),
        TypeError,
        f"`on_give_up` {LIKE} {HERE}.takes_none, which takes no arguments; it must be like `lambda error: ...`",
    ),
    (retry(OSError, on_event=5), TypeError, must("on_event", 5)),
    (
        retry(OSError, on_event=ajudge),
        TypeError,
        (
            f"`on_event` {ASYNC} {HERE}.ajudge; use a plain function that passes the event on, such as to a queue "
            "or a new task"
        ),
    ),
    (
        retry(OSError, on_success=takes_none),
        TypeError,
        (
            f"`on_success` is called with 1 argument (event), got {HERE}.takes_none, which takes no arguments; it must "
            "be like `lambda event: ...`"
        ),
    ),
    (
        partial(LISTEN, 5),
        TypeError,
        "a listener must be callable with one event, got 5",
    ),
    (
        retry(OSError, unknown="raise"),
        ValueError,
        '`unknown` must be "repeat" or "stop", or None (the process\'s own), got \'raise\'',
    ),
    (
        retry(OSError, enforce="repeat"),
        ValueError,
        '`enforce` must be "stop" or "warn", or None (the process\'s own), got \'repeat\'',
    ),
    (retry(OSError, safe=5), TypeError, f"`safe` must hold {VOUCHES}, got 5"),
    (retry(OSError, safe=""), TypeError, f"`safe` must hold {VOUCHES}, got ''"),
    (retry(OSError, safe=["GET", 5]), TypeError, f"`safe` must hold {VOUCHES}, got ['GET', 5]"),
    (retry(OSError, safe=["GET", ""]), TypeError, f"`safe` must hold {VOUCHES}, got ['GET', '']"),
    (retry(OSError, safe=["GET", "a b c"]), ValueError, f"`safe` must hold {VOUCHES}, got 'a b c'"),
    (retry(OSError, safe="a/b/c"), ValueError, f"`safe` must hold {VOUCHES}, got 'a/b/c'"),
]


@pytest.mark.parametrize(("make", "error", "text"), WRONG, ids=map(str, range(len(WRONG))))
def test_what_is_refused(make: Callable[[], object], error: type[Exception], text: str) -> None:
    """The whole text names the option, what it must be, what it got, and what to write instead."""
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == text


FOREIGN: list[tuple[str, object, str]] = [
    ("stop", STOP, "tenacity's stop_after_attempt: write attempts=7"),
    ("stop", foreign("tenacity.stop", "stop_after_delay", max_delay=9), "tenacity's stop_after_delay: write timeout=9"),
    (
        "delay",
        foreign("tenacity.stop", "stop_before_delay", max_delay=8),
        "tenacity's stop_before_delay: write timeout=8",
    ),
    (
        "delay",
        foreign("tenacity.wait", "wait_fixed", wait_fixed=2.5),
        "tenacity's wait_fixed: write backoff=forbear.Constant(2.5)",
    ),
    (
        "stop",
        foreign("tenacity", "stop_after_delay"),
        "tenacity's stop_after_delay: pass attempts= and timeout= instead",
    ),
    ("stop", foreign("retrying", "Retrying"), "retrying's Retrying: pass attempts= and timeout= instead"),
    (
        "key",
        foreign("stamina", "AsyncRetryingCaller"),
        "stamina's AsyncRetryingCaller: pass a function of the arguments, such as lambda order: order.key",
    ),
    (
        "on_result",
        foreign_function("backoff", "on_predicate"),
        "backoff's on_predicate: pass a function of the value that returns True for a retry",
    ),
    ("on_success", foreign_function("tenacity", "after_log"), "tenacity's after_log: write it in forbear's terms"),
    (
        "backoff",
        foreign("tenacity", "wait_none"),
        "tenacity's wait_none: pass forbear.Exponential(initial, multiplier, maximum) or forbear.Constant(seconds)",
    ),
]


@pytest.mark.parametrize(("option", "value", "text"), FOREIGN, ids=map(str, range(len(FOREIGN))))
def test_objects_of_other_libraries(option: str, value: object, text: str) -> None:
    """They are callable, so only their module tells them apart; the text has forbear's spelling, with their number."""
    with pytest.raises(TypeError) as caught:
        judges.refuse_foreign(option, value)
    assert str(caught.value) == f"`{option}` must not be {text}; {TABLE}"


@pytest.mark.parametrize("module", ["tenacity_ext.stop", "my.tenacity", HERE])
def test_objects_of_similar_modules_pass(module: str) -> None:
    """Only the first part of the module's name counts, and all of it."""
    judges.refuse_foreign("stop", foreign(module, "stop_after_attempt", max_attempt_number=3))
    judges.refuse_foreign("stop", foreign_function(module, "stop_after_attempt"))


def test_an_object_without_a_name() -> None:
    """It is refused as an object of its library."""
    nameless = SimpleNamespace(__module__="tenacity.retry", __qualname__="nameless")
    with pytest.raises(TypeError, match=r"`on` must not be tenacity's an object: pass exception types"):
        judges.refuse_foreign("on", nameless)


def test_what_passes() -> None:
    """Right values are kept: a type alone, types in a tuple, or one judge for types and functions."""
    assert forbear.retry(OSError).on is OSError
    assert forbear.retry(OSError, ValueError).on == (OSError, ValueError)
    assert forbear.retry(on=judge).on is judge
    assert judges.make_judge((OSError, judge, ValueError)) == AnyOf((OSError, ValueError), (judge,))
    policy = forbear.retry(OSError, safe=["GET", "example.v1.Shop/*", "/example.v1.Shop/Get", "config set", "a-b"])
    assert policy.safe == ("GET", "example.v1.Shop/*", "/example.v1.Shop/Get", "config set", "a-b")
    assert forbear.retry(OSError, safe="GET").safe == ("GET",)
    assert forbear.retry(OSError, safe=()).safe == forbear.retry(OSError, apis=()).apis == ()
    for choice in ("repeat", "stop", None):
        assert forbear.retry(OSError, unknown=choice).unknown == choice
    assert judges.check_listener("on_event", judge) is judge
    assert judges.check_listener("on_event", None) is None
    assert judges.check_on_give_up("on_give_up", judge) is judge
    assert judges.check_on_give_up("on_give_up", "value") == "value"
    assert judges.check_callable("name", takes_none) is takes_none


def test_names_are_checked_by_those_who_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check gets each name, and no pattern; the names of a set of operations were checked when it was made."""
    seen, again = list[str](), list[str]()
    monkeypatch.setattr(judges, "name_checks", [seen.append, again.append])
    known = OperationSet("a set of operations")
    forbear.retry(OSError, safe=["GET", "POST https://api.example.com/search", known])
    assert seen == again == ["GET"]


def test_raise_is_one_object() -> None:
    """The default of `on_give_up` shows its name, and stays itself in a pickle."""
    assert repr(RAISE) == "RAISE"
    assert pickle.loads(pickle.dumps(RAISE)) is RAISE


def test_types_and_functions_in_one_tuple() -> None:
    """The functions are asked first, in their order, and the types count for what they decline."""
    asked = list[object]()

    def first(error: Exception) -> bool:
        asked.append(error)
        return False

    made = judges.make_judge((first, OSError))
    error = OSError()
    assert made(error) is TRANSIENT
    assert asked == [error]
