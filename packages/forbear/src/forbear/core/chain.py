"""Walk from an error to all that it holds: the one walker for whoever looks for a cause, a request or a report."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Any

MOST = 100

# Each of these reads the exception itself, even if its class overrides attribute access.
arguments_of: "Callable[[BaseException], tuple[Any, ...]]" = BaseException.__dict__["args"].__get__
attributes_of: "Callable[[BaseException], dict[str, object]]" = BaseException.__dict__["__dict__"].__get__
cause_of = BaseException.__dict__["__cause__"].__get__
context_of = BaseException.__dict__["__context__"].__get__
traceback_of = BaseException.__dict__["__traceback__"].__get__
members_of: "Callable[[BaseException], tuple[BaseException, ...]]" = BaseExceptionGroup.__dict__["exceptions"].__get__

_IN_ORDER = ("reason", "orig", "last_exception", "inner_exception")
"""Attributes in which libraries keep the error that they wrap."""
_WRAPPED = frozenset(_IN_ORDER)


def read(thing: object, name: str) -> "Any":
    """Return the attribute `name` of `thing`, None if there is none or reading it raises an exception.

    Such an error must not hide the one that is looked at.
    """
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def entries_of(trace: "TracebackType | None") -> "Iterator[TracebackType]":
    """Yield the entries of a traceback from this one on, the outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def innermost_of(error: BaseException) -> "TracebackType | None":
    """Return the last entry of an error's traceback, that of the function which raised it; None without a traceback."""
    return next(reversed(list(entries_of(traceback_of(error)))), None)


def find_wrapped(error: BaseException) -> "list[object]":
    """Return the errors that `error` wraps, the likeliest last: its cause, its `reason`, the first among its arguments.

    The items need not be exceptions.
    """
    argument = next((each for each in arguments_of(error) if isinstance(each, BaseException)), None)
    return [cause_of(error), read(error, "reason"), argument]


def chain(
    error: BaseException, wrapped: "Callable[[BaseException], Iterable[object]]" = find_wrapped
) -> "Iterator[BaseException]":
    """Yield `error`, then all errors that it wraps, however deep, each once, and at most MOST.

    `wrapped` returns what one error wraps, the likeliest last; what is no exception is left out.

    >>> error = RuntimeError("no stock")
    >>> error.__cause__ = KeyError("red")
    >>> [*error_chain(error)]
    [RuntimeError('no stock'), KeyError('red')]
    """
    return walk(error, lambda link: [each for each in wrapped(link) if isinstance(each, BaseException)], MOST)


def walk(start: "Any", held: "Callable[[Any], Iterable[Any]]", most: int) -> "Iterator[Any]":
    """Yield `start`, then all objects that it holds, each once, and at most `most`.

    `held` returns what one of them holds, the likeliest last. It is called when the walk goes on from there.
    """
    seen = set[int]()
    waiting = [start]
    while waiting and len(seen) < most:
        thing = waiting.pop()
        if id(thing) not in seen:
            seen.add(id(thing))
            yield thing
            waiting += held(thing)


def list_errors(error: BaseException, handled: BaseException | None, most: int) -> "tuple[BaseException, ...]":
    """Return `error`, then every error that it holds in any way, but for `handled` and what that holds; at most `most`.

    Those are causes, contexts (also suppressed ones), members of groups, and what libraries keep in attributes or among
    the arguments. No attribute is looked up by the class, so no code of the user runs.
    """

    def find_held(link: BaseException) -> "list[BaseException]":
        kept, held = attributes_of(link), [*arguments_of(link)[:MOST]]
        if kept and not _WRAPPED.isdisjoint(kept):
            held += [kept[name] for name in _IN_ORDER if name in kept]
        if issubclass(type(link), BaseExceptionGroup):  # isinstance would look up `__class__`
            held += members_of(link)[:MOST]
        held += context_of(link), cause_of(link)
        return [each for each in held if issubclass(type(each), BaseException) and each is not handled]

    return tuple(walk(error, find_held, most))
