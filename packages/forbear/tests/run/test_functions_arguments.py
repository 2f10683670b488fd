"""Functions of the user that cannot take what they are called with are refused when the policy is made."""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any
from unittest.mock import MagicMock, Mock, create_autospec

import httpx
import pytest

import forbear
from forbear.budgets import SharedBudget
from forbear.run.functions import check_key, check_takes, find_arity, name_of
from forbear.run.plan import OPTIONS


class Callables:
    """Methods and an object that can be called."""

    def none(self) -> bool:
        """Take nothing."""
        return True

    def one(self, error: object) -> bool:
        """Take one argument."""
        return bool(error)

    def __call__(self) -> bool:
        return True


def two(first: object, second: object) -> bool:
    """Take two arguments."""
    return first is second


def named(*, error: object) -> bool:
    """Take an argument by name."""
    return bool(error)


OPTION_NAMES = ["on", "on_result", "stop", "delay", "on_event", "on_success", "on_give_up"]
WRONG: list[tuple[Callable[..., Any], str]] = [
    (lambda: True, "takes no arguments"),
    (two, "needs 2"),
    (named, "needs an argument by name"),
    (Callables().none, "takes no arguments"),
    (Callables(), "takes no arguments"),
    (partial(Callables().one, 1), "takes no arguments"),
]


def make(option: str, function: object) -> None:
    """Make a policy with one option."""
    options: Any = {option: function}
    if option == "on":
        forbear.retry(**options)
    else:
        forbear.retry(OSError, **options)


def any_number(*arguments: object) -> object:
    """Take any number of arguments."""
    return arguments


def any_names(**names: object) -> object:
    """Take arguments by name."""
    return names


def with_default(error: object, other: object = 1) -> object:
    """Take one argument, or two."""
    return error is other


def with_option(error: object, *, other: object = 1) -> object:
    """Take one argument, and an option."""
    return error is other


def with_name(order: object, *, retry: object) -> object:
    """Take one argument, and another by name."""
    return order is retry


@pytest.mark.parametrize("option", OPTION_NAMES)
@pytest.mark.parametrize(("function", "takes"), WRONG, ids=map(str, range(6)))
def test_a_function_must_take_one_argument(option: str, function: Callable[..., Any], takes: str) -> None:
    """The error names the option, the argument, the function and what it takes."""
    with pytest.raises(TypeError) as raised:
        make(option, function)
    assert str(raised.value).startswith(f"`{option}` is called with 1 argument (")
    assert f", which {takes}; it must be like `lambda " in str(raised.value)


@pytest.mark.parametrize("option", OPTION_NAMES)
@pytest.mark.parametrize(
    "function",
    [
        Callables().one,
        partial(two, 1),
        partial(two, second=2),
        any_number,
        with_default,
        with_option,
        print,
        Mock(spec=len),
        Mock(spec=any_number),
        MagicMock(spec=len),
        create_autospec(Callables().one),
    ],
    ids=map(str, range(11)),
)
def test_what_can_take_it_passes(option: str, function: Callable[..., Any]) -> None:
    """Functions in C, and stand-ins, are let through."""
    make(option, function)


def test_every_option_that_is_a_function_is_checked() -> None:
    """A new option cannot be forgotten: each one here either refuses this function, or takes no functions."""
    others = {"key", "name", "service", "safe", "apis", "others"}
    for option in OPTIONS.keys() - others:
        with pytest.raises((TypeError, ValueError)):
            make(option, lambda: True)


def test_adapters_and_listeners_check_at_once() -> None:
    """Nothing is sent before, and no error is hidden later."""
    wrong: Any = lambda: True  # noqa: E731 - its type is wrong, too
    with pytest.raises(TypeError, match="`on_result` is called with 1 argument"):
        forbear.install(httpx.Client(), on_result=wrong)
    for client in (httpx.Client(), httpx.AsyncClient()):
        with pytest.raises(TypeError, match="`safe` is called with 1 argument"):
            forbear.install(client, safe=wrong)
    with pytest.raises(TypeError, match="a listener is called with 1 argument"):
        forbear.observe.listen(wrong)
    with pytest.raises(TypeError, match="`on_event` is called with 1 argument"):
        SharedBudget("redis://localhost", "name", on_event=wrong)


class Slow:
    """A backoff whose method takes too little."""

    def delay(self, n: int) -> float:
        """Return one second."""
        return 1.0


def test_a_backoff_of_the_user() -> None:
    """Its method is called with three arguments."""
    slow: Any = Slow()
    text = (
        r"`delay` of `backoff` is called with 3 arguments \(n, u, previous\), got .*Slow.delay, which takes at most 1"
    )
    with pytest.raises(TypeError, match=text):
        forbear.retry(OSError, backoff=slow)


@pytest.mark.parametrize("name", ["read", "modify", "write", "conflict", "mine"])
def test_the_functions_of_update(name: str) -> None:
    """Each is called with what its name says."""
    wrong: Any = two
    parts: dict[str, Any] = {"read": dict, "modify": bool, "write": print, "conflict": bool, "mine": bool}
    with pytest.raises(TypeError, match=f"`{name}` is called with"):
        forbear.update(**(parts | {name: wrong}))


@pytest.mark.parametrize(
    ("key", "function"),
    [(lambda: "key", Callables().one), (two, Callables().one), (Callables().one, two)],
    ids=map(str, range(3)),
)
def test_a_key_takes_the_arguments_of_its_function(key: Any, function: Any) -> None:
    """It is refused when the function is decorated."""
    with pytest.raises(TypeError, match="`key` is called with the arguments of the function"):
        forbear.retry(OSError, key=key)(function)


@pytest.mark.parametrize(
    ("key", "function"),
    [
        (any_names, Callables().one),
        (any_number, two),
        (Callables().one, with_default),
        (Callables().one, any_number),
        (with_name, any_names),
        (two, any_names),
        (str, two),
        (Callables().one, print),
    ],
    ids=map(str, range(8)),
)
def test_a_key_that_may_fit_passes(key: Any, function: Any) -> None:
    """A key is let through where nothing is known for certain."""
    check_key(key, function)


def test_arities() -> None:
    """A bound argument counts no more, and one bound by name leaves those before it."""
    assert find_arity(partial(two, second=1)) == (1, 1)
    assert find_arity(partial(partial(two, 1), 2)) == (0, 0)
    assert find_arity(int) is find_arity(len) is None
    with pytest.raises(TypeError, match=r"is called without arguments, got .*two, which needs 2; .* `lambda: ...`"):
        check_takes("`read`", two)


class _PlaceholderType:
    """The type of functools.Placeholder in Python 3.14."""


def test_a_placeholder_of_partial() -> None:
    """Its place is not known."""
    assert find_arity(partial(two, _PlaceholderType(), 1)) is None


def one_and_more(first: object, *more: object) -> object:
    """Take one argument, or more."""
    return first, more


class Making(type):
    """A class of classes, whose own call is written in Python."""

    def __call__(cls, *arguments: object) -> object:
        return arguments


INFINITY = float("inf")
ARITIES: list[tuple[Any, tuple[float, float] | None]] = [
    (lambda: 1, (0, 0)),
    (two, (2, 2)),
    (with_default, (1, 2)),
    (with_option, (1, 1)),
    (with_name, (INFINITY, 1)),
    (any_number, (0, INFINITY)),
    (any_names, (0, 0)),
    (one_and_more, (1, INFINITY)),
    (partial(one_and_more, 1), (0, INFINITY)),
    (partial(one_and_more, 1, 2), (0, INFINITY)),
    (partial(one_and_more, first=1), (0, 0)),
    (partial(two, first=1), (1, 0)),
    (partial(partial(two, second=1), second=2), (1, 1)),
    (partial(partial(with_name, retry=1), 1), (0, 0)),
    (partial(with_name, retry=1), (1, 1)),
    (partial(with_default, other=2), (1, 1)),
    (Callables.one, (2, 2)),
    (Callables().one, (1, 1)),
    (Callables(), (0, 0)),
    (partial(Callables()), (0, 0)),
    (Callables, None),
    (Making("Made", (), {}), None),
    (itemgetter(1), None),
    (Mock(spec=two), (0, INFINITY)),
]


@pytest.mark.parametrize(("function", "arity"), ARITIES, ids=map(str, range(len(ARITIES))))
def test_how_many_arguments_a_function_takes(function: Any, arity: tuple[float, float] | None) -> None:
    """The fewest and the most by position; what is bound, has a default or goes by name is left out."""
    assert find_arity(function) == arity


def test_what_the_text_says_of_arguments() -> None:
    """It has the number and names of the arguments, the function, what it takes and an example."""
    for function, names, text in (
        (any_names, ("a", "b"), "with 2 arguments (a, b), got {}, which takes no arguments; {}lambda a, b: ...`"),
        (Callables().one, ("a", "b"), "with 2 arguments (a, b), got {}, which takes at most 1; {}lambda a, b: ...`"),
        (two, ("a",), "with 1 argument (a), got {}, which needs 2; {}lambda a: ...`"),
        (named, ("a",), "with 1 argument (a), got {}, which needs an argument by name; {}lambda a: ...`"),
        (with_default, (), "without arguments, got {}, which needs 1; {}lambda: ...`"),
    ):
        with pytest.raises(TypeError) as raised:
            check_takes("`read`", function, *names)
        assert str(raised.value) == "`read` is called " + text.format(name_of(function), "it must be like `")
    check_takes("`read`", with_default, "a")
    check_takes("`read`", with_default, "a", "b")


def test_what_the_text_says_of_a_key() -> None:
    """It has both names, and says how the key must look; needs by name are nobody's business here."""
    with pytest.raises(TypeError) as raised:
        check_key(two, Callables().one)
    assert str(raised.value) == (
        f"`key` is called with the arguments of the function, got {__name__}.two for {__name__}.Callables.one: give it "
        "the same parameters, as in `lambda order: order.key`"
    )
    for key, function in ((named, two), (Callables().one, named), (two, with_default), (with_default, one_and_more)):
        check_key(key, function)
