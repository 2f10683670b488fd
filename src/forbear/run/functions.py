"""Tell kinds of functions and values apart by code flags: importing inspect would cost too much."""

from collections.abc import Coroutine
from functools import partial, update_wrapper
from types import FunctionType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # CO_COROUTINE, CO_GENERATOR, CO_ASYNC_GENERATOR
_MARKS = ("_is_coroutine_mark", "_is_coroutine")  # by which inspect and asyncio know one that is so by promise


def _flags(function: object) -> int:
    """The code flags, 0 where there are none; a mock and some proxies answer to `__code__`, but not with numbers."""
    flags: object = getattr(getattr(function, "__code__", None), "co_flags", None)
    return flags if isinstance(flags, int) else 0


def _innermost(function: "Any") -> "Any":
    """The plain function behind partials, methods and callable objects."""
    while not isinstance(function, FunctionType | type):
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            method: Any = type(function).__call__ if callable(function) else None
            if _flags(function) or not isinstance(method, FunctionType):
                return function  # written in C, or standing for a function
            function = method
    return function


def name_of(function: object) -> str:
    """The name for reports and events: "module.qualified_name" where there is one."""
    while isinstance(function, partial):
        function = function.func
    name: object = getattr(function, "__qualname__", None)
    module: object = getattr(function, "__module__", None)
    if not isinstance(name, str):
        name = type(function).__qualname__
    return f"{module}.{name}" if isinstance(module, str) else name


def dress(wrapper: "Callable[..., Any]", function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Give `wrapper` the name, documentation and signature of `function`."""
    try:
        return update_wrapper(wrapper, function)
    except TypeError:  # a proxy that answers to any name, but not with strings
        return wrapper


def is_async(function: object) -> bool:
    """Whether calling `function` gives a coroutine, as far as can be told without calling it."""
    inner = _innermost(function)
    return bool(_flags(inner) & _COROUTINE) or any(hasattr(inner, mark) for mark in _MARKS)


def check_retryable(function: object) -> None:
    """Refuse what cannot be retried as a function: things that are not callable, and generator functions."""
    if not callable(function):
        raise TypeError(f"only a callable can be retried, got {function!r}")
    if _flags(_innermost(function)) & (_GENERATOR | _ASYNC_GENERATOR):
        raise TypeError(
            f"{name_of(function)} is a generator function: repeating it would yield items twice; "
            "retry the call that fetches one item or page inside it, or a function that returns a list"
        )


def no_awaitable(name: str) -> TypeError:
    """The error of a sync function that was called as an async one."""
    return TypeError(f"{name} was called as an async function, but returned no awaitable; call it with `policy.call`")


def refuse_coroutine(value: object, name: str) -> None:
    """Refuse the coroutine that a sync function returned: nothing would retry what it does when it is awaited.

    Other awaitables are values like any other: futures of work that has begun, clients that can be awaited.
    """
    if hasattr(type(value), "__await__") and isinstance(value, Coroutine):  # the first is quick to say no
        refuse_awaitable(value, name, "a coroutine")  # pyright: ignore[reportUnknownArgumentType]


def refuse_awaitable(value: object, name: str, kind: str = "an awaitable") -> "NoReturn":
    """Refuse the awaitable that a sync function returned; a coroutine is closed, for it will never be awaited."""
    if isinstance(value, Coroutine):
        value.close()
    raise TypeError(
        f"{name} was called as a sync function, but returned {kind}, which would go unretried; "
        "call it with `policy.acall`, or make it `async def` if it is decorated"
    )


def refuse_async(parameter: str, function: object, cure: str) -> None:
    """Refuse an async function where a plain one is called: nobody would await it."""
    if is_async(function) or _flags(_innermost(function)) & _ASYNC_GENERATOR:
        raise TypeError(f"{parameter} must not be async, for nobody awaits it, got {name_of(function)}; {cure}")
