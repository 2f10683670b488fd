"""What kind of function is to be retried, told from its code flags: importing inspect would cost too much."""

from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # CO_COROUTINE, CO_GENERATOR, CO_ASYNC_GENERATOR


def _innermost(function: "Any") -> "Any":
    """The plain function behind partials, methods and callable objects."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(function, "__code__") or isinstance(function, type):
            return function
        else:
            method: Any = type(function).__call__ if callable(function) else None
            if not hasattr(method, "__code__"):
                return function
            function = method


def name_of(function: object) -> str:
    """The name for reports and events: "module.qualified_name" where there is one."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else name


def is_async(function: object) -> bool:
    """Whether calling `function` gives a coroutine, as far as can be told without calling it."""
    inner = _innermost(function)
    flags: int = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    return bool(flags & _COROUTINE) or hasattr(inner, "_is_coroutine_mark")


def check_retryable(function: object) -> None:
    """Refuse what cannot be retried as a function: things that are not callable, and generator functions."""
    if not callable(function):
        raise TypeError(f"only a callable can be retried, got {function!r}")
    inner = _innermost(function)
    flags: int = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    if flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise TypeError(
            f"{name_of(function)} is a generator function: repeating it would yield items twice; "
            "retry the call that fetches one item or page inside it, or a function that returns a list"
        )


def refuse_awaitable(value: object, name: str) -> None:
    """Refuse the awaitable that a sync function handed back: nothing would retry what happens when it is awaited."""
    if not hasattr(type(value), "__await__"):
        return  # a proxy that answers to any name
    close = getattr(value, "close", None)
    if close is not None:
        close()
    raise TypeError(
        f"{name} is not an async function and yet returned an awaitable, which would go unretried; "
        "make it `async def`, or call it with `policy.acall`"
    )
