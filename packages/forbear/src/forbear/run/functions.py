"""Recognize async and generator functions, coroutines, and names of functions, without importing inspect.

Functions that raise TypeError for what cannot be retried are here, too.
"""

from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from types import FunctionType, MethodType

from forbear.core.check import INFINITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

_VARIABLE, _BY_NAME = 0x04, 0x08  # CO_VARARGS, CO_VARKEYWORDS
_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # CO_COROUTINE, CO_GENERATOR, CO_ASYNC_GENERATOR
_CONTEXT_MANAGERS = frozenset({"contextmanager.<locals>.helper", "asynccontextmanager.<locals>.helper"})
_MARK, _OLD_MARK = "_is_coroutine_mark", "_is_coroutine"  # of inspect.markcoroutinefunction; of asyncio and mocks


def _flags(function: object) -> int:
    """Return the code flags of a function, 0 if it has none; `__code__` of mocks and proxies may be anything."""
    if type(function) is FunctionType:
        return function.__code__.co_flags
    flags: object = getattr(getattr(function, "__code__", None), "co_flags", None)
    return flags if isinstance(flags, int) else 0


def _innermost(function: "Any") -> "Any":
    """Return the plain function behind partials, methods and callable objects (their `__call__`).

    A class, a function written in C and a stand-in such as a mock are returned as they are.
    """
    while not isinstance(function, FunctionType | type):
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            method: Any = type(function).__call__ if callable(function) else None
            if _flags(function) or not isinstance(method, FunctionType):
                return function  # written in C, or a stand-in such as a mock
            function = method
    return function


def name_of(function: object) -> str:
    """Return the name of `function` for reports and events, "module.qualified_name".

    A partial has the name of its function. An object without a `__qualname__`, such as an instance with a `__call__`,
    has that of its type. Without a `__module__`, the name has no module.
    """
    while isinstance(function, partial):
        function = function.func
    name: object = getattr(function, "__qualname__", None)
    module: object = getattr(function, "__module__", None)
    if not isinstance(name, str):
        name = type(function).__qualname__
    return f"{module}.{name}" if isinstance(module, str) else name


def copy_metadata(wrapper: "Callable[..., Any]", function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Copy the name, docstring and signature of `function` to `wrapper`, by `functools.update_wrapper`.

    The methods of a cache, such as `cache_clear`, are copied, too. Returns the wrapper, also if that raises TypeError
    for a proxy whose `__name__` is no string.
    """
    if type(function) is not FunctionType:  # `functools.lru_cache` and its likes have methods of such names
        for name in dir(type(function)):
            if name.startswith("cache_"):
                setattr(wrapper, name, getattr(function, name))
    try:
        return update_wrapper(wrapper, function)
    except TypeError:  # a proxy whose `__name__` is no string
        return wrapper


MARK = "__forbear__"
"""The attribute of a decorated function that has its code: other decorators copy attributes, but have other code."""


def is_async(function: object) -> bool:
    """Return whether `function` is a coroutine function, as far as can be seen without calling it.

    It looks through partials, methods and callable objects, and knows functions that are marked as coroutine functions,
    as by inspect.
    """
    inner = _innermost(function)
    return bool(_flags(inner) & _COROUTINE) or hasattr(inner, _MARK) or hasattr(inner, _OLD_MARK)


def check_retryable(function: object) -> None:
    """Raise TypeError for what cannot be retried: no callables, (async) generator functions, context managers."""
    if not callable(function):
        cure = "; pass the function itself, not what it returns"
        if hasattr(type(function), "cr_code"):  # a coroutine: the call was written in the place of the function
            cure = "; pass the function and its arguments: policy.acall(function, 1)"
        elif hasattr(type(function), "__get__"):
            cure = f"; decorate the function itself: @forbear.retry(...) belongs below @{type(function).__name__}"
        raise TypeError(f"only a callable can be retried, got {function!r}{cure}")
    inner = _innermost(function)
    if getattr(getattr(inner, "__code__", None), "co_qualname", None) in _CONTEXT_MANAGERS:
        raise TypeError(
            f"{name_of(function)} makes a context manager, whose body runs after the call: it would go unretried; "
            "retry the calls within it"
        )
    if _flags(inner) & (_GENERATOR | _ASYNC_GENERATOR):
        raise TypeError(
            f"{name_of(function)} is a generator function: repeating it would yield items twice; "
            "retry the call that fetches one item or page inside it, or a function that returns a list"
        )


def refuse_made(function: object) -> None:
    """Raise TypeError for a class, and for the object that another decorator made of a function: both would get lost.

    A queue's task, a command and a fixture are such objects, and their owners would call them without a retry. Caches
    keep their methods (`copy_metadata`). An async object passes: asgiref's has methods that nobody calls.
    """
    if isinstance(function, type):
        raise TypeError(f"{function.__name__} is a class, and would become a function; decorate its methods")
    if isinstance(function, FunctionType | MethodType | partial) or is_async(function):
        return
    own: dict[str, object] = getattr(function, "__dict__", {})
    made_of = [getattr(function, "__wrapped__", None), *(own.get(name) for name in ("fn", "func", "callback"))]
    inner = next((each for each in made_of if isinstance(each, FunctionType | MethodType)), None)
    kind: type = function.__class__  # that of a proxy is another one: the task's
    methods = (name for name in dir(kind) if name[0] != "_" and isinstance(getattr(kind, name, None), FunctionType))
    if inner is not None and (any(methods) or kind.__module__.startswith("_pytest.")):
        raise TypeError(
            f"only a function can be decorated, got an object of the type {name_of(type(function))}, which another "
            f"decorator made of {name_of(inner)}: its methods would get lost, and its library would call it without a "
            "retry; put @forbear.retry(...) below that decorator, next to the function"
        )


def refuse_coroutine(value: object, name: str) -> None:
    """Close `value` and raise TypeError if it is a coroutine: the sync function `name` returned it.

    Its work would not be retried. Other awaitables are ordinary values: futures of work that has begun, clients that
    can be awaited.
    """
    if hasattr(type(value), "__await__") and isinstance(value, Coroutine):  # the first test is quick
        refuse_awaitable(value, name, "a coroutine")  # pyright: ignore[reportUnknownArgumentType]


def refuse_awaitable(value: object, name: str, kind: str = "an awaitable") -> "NoReturn":
    """Raise TypeError always: the sync function `name` returned the awaitable `value`; a coroutine is closed first.

    `kind` names the value in the error.
    """
    if isinstance(value, Coroutine):
        value.close()
    raise TypeError(
        f"{name} was called as a sync function, but returned {kind}, which would go unretried; "
        "call it with `policy.acall`, or make it `async def` if it is decorated"
    )


def refuse_plain_loop(frame: "FrameType") -> None:
    """Raise TypeError if `frame`, of a plain loop over a policy, is that of async code, whose event loop would wait."""
    if frame.f_code.co_flags & (_COROUTINE | _ASYNC_GENERATOR):
        raise TypeError(
            "`for attempt in policy` would block the event loop while it waits: write `async for attempt in policy`"
        )


def warn_of_blocking(name: str) -> None:
    """Warn, once for each place, that the sync `name` waits in the thread of an event loop, which stands still.

    The place is the line of the nearest coroutine that calls it, else the nearest line outside of forbear. A cell of a
    notebook may wait: its loop serves nobody else.
    """
    import sys
    from warnings import warn_explicit

    frame: FrameType | None = sys._getframe(1)
    place: FrameType | None = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if place is None and module.partition(".")[0] != "forbear":
            place = frame
        if frame.f_code.co_flags & (_COROUTINE | _ASYNC_GENERATOR):
            if module.partition(".")[0] == "IPython" or frame.f_code.co_name == "<module>":
                return
            place = frame
            break
        frame = frame.f_back
    if place is not None:
        text = (
            f"{name} waits between attempts and blocks the event loop meanwhile: make it async, or call it by "
            "asyncio.to_thread (trio.to_thread.run_sync in trio)"
        )
        registry = place.f_globals.setdefault("__warningregistry__", {})
        name = str(place.f_globals.get("__name__"))
        warn_explicit(text, RuntimeWarning, place.f_code.co_filename, place.f_lineno, name, registry)


def find_arity(function: "Any") -> "tuple[float, float] | None":
    """Return the fewest and the most arguments by position that a function of the user takes, None if that is unknown.

    It is known of what is written in Python, also behind partials, methods and `__call__`, but of no class. The fewest
    are infinite if the function needs an argument by name.
    """
    bound = 0
    given: dict[str, Any] = {}
    while type(function) is not FunctionType:  # a mock with a `spec` says that it is an instance
        if isinstance(function, partial):
            if any(type(argument).__name__ == "_PlaceholderType" for argument in function.args):
                return None
            bound, given, function = bound + len(function.args), {**function.keywords, **given}, function.func
        elif isinstance(function, MethodType):
            bound, function = bound + 1, function.__func__
        else:
            method: Any = None if isinstance(function, type) or _flags(function) else type(function).__call__
            if not isinstance(method, FunctionType):
                return None  # a class, written in C, or a stand-in
            bound, function = bound + 1, method
    code = function.__code__
    names, by_name = (
        code.co_varnames[: code.co_argcount],
        code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount],
    )
    needed = names[: len(names) - len(function.__defaults__ or ())]
    free = names[bound:]
    most: float = next((at for at, name in enumerate(free) if name in given), len(free))
    if code.co_flags & _VARIABLE and most == len(free):
        most = INFINITY
    fewest: float = sum(name not in given for name in needed[bound:])
    if any(name not in given and name not in (function.__kwdefaults__ or {}) for name in by_name):
        fewest = INFINITY
    return fewest, most


def check_takes(parameter: str, function: object, *names: str) -> None:
    """Raise TypeError unless `function` can be called with as many arguments by position as there are `names`.

    What has no code in Python passes. `parameter` names the function in the text, and `names` its arguments.
    """
    arity = find_arity(function)
    if arity is None or arity[0] <= len(names) <= arity[1]:
        return
    fewest, most = arity
    if fewest == INFINITY:
        takes = "needs an argument by name"
    elif most == 0:
        takes = "takes no arguments"
    else:
        takes = f"takes at most {most}" if most < len(names) else f"needs {fewest}"
    listed = ", ".join(names)
    count = f"with {len(names)} argument{'s' * (len(names) > 1)} ({listed})" if names else "without arguments"
    like = f"lambda {listed}: ..." if names else "lambda: ..."
    raise TypeError(f"{parameter} is called {count}, got {name_of(function)}, which {takes}; it must be like `{like}`")


def check_key(key: object, function: object) -> None:
    """Raise TypeError for a `key` that cannot take the arguments of the `function` that a policy decorates."""
    own, others = find_arity(key), find_arity(function)
    if own is None or others is None or _flags(_innermost(key)) & _BY_NAME or INFINITY in (own[0], others[0]):
        return
    if own[1] < others[0] or (own[0] > others[1] and not _flags(_innermost(function)) & _BY_NAME):
        raise TypeError(
            f"`key` is called with the arguments of the function, got {name_of(key)} for {name_of(function)}: "
            "give it the same parameters, as in `lambda order: order.key`"
        )


def refuse_async(parameter: str, function: object, cure: str) -> None:
    """Raise TypeError if `function` is async or an async generator function, where a sync one is needed.

    The text names the `parameter` and ends with the `cure`, which says what to do instead.
    """
    if is_async(function) or _flags(_innermost(function)) & _ASYNC_GENERATOR:
        raise TypeError(f"{parameter} must not be async, because it is not awaited, got {name_of(function)}; {cure}")
