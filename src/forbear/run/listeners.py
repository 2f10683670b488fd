"""Who is told of a run: the listener of its policy and those of the whole process. It knows none of them."""

from collections.abc import Coroutine
from contextvars import ContextVar

from forbear.core.redact import redact
from forbear.core.report import text_of
from forbear.run.functions import name_of, refuse_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType

    from forbear.core.events import Event

    Listener = Callable[[Event], object]


def _nobody() -> "tuple[Listener, ...]":
    return ()


_hushed: ContextVar[bool] = ContextVar("forbear_hushed", default=False)

_process: "list[Callable[[], tuple[Listener, ...]]]" = [_nobody]


def ask(who: "Callable[[], tuple[Listener, ...]]") -> None:
    """Ask `who` at the first failure of each run who listens in this process; it replaces the one asked before."""
    _process[0] = who


class hushed:  # noqa: N801 - used like a function
    """`with hushed():` tells nobody in the process of runs that are only imagined; the listener of a policy is told."""

    __slots__ = ("_token",)

    _token: "Token[bool]"

    def __enter__(self) -> None:
        self._token = _hushed.set(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        _hushed.reset(self._token)


def of(own: "Listener | None") -> "tuple[Listener, ...]":
    """All who listen to a run whose policy tells `own`."""
    others = () if _hushed.get() else _process[0]()
    return others if own is None else (own, *others)


def check(parameter: str, listener: object) -> None:
    """Refuse what cannot be called with an event, and async functions: nobody would await them."""
    if not callable(listener):
        raise TypeError(f"{parameter} must be callable with one event, got {listener!r}")
    refuse_async(parameter, listener, "have a plain function hand the event on, as to a queue or a new task")


_telling: "ContextVar[tuple[Listener, ...]]" = ContextVar("forbear_telling", default=())
"""The listeners that are being told of an event, outermost first."""
_DEEPEST = 5
"""How deep listeners may tell others by runs of their own: those that are made anew each time are never the same."""


def tell(listeners: "tuple[Listener, ...]", *events: "Event") -> None:
    """Call each listener with events that come together.

    One that fails is warned about: it must not turn a success into a failure, nor hide an error. One that is being told
    of an event is not told of the runs that it starts itself, in tasks of theirs neither: it would never end.
    """
    telling = _telling.get()
    if len(telling) >= _DEEPEST:
        return
    for listener in listeners:
        if listener in telling:
            continue
        token = _telling.set((*telling, listener))
        try:
            for event in events:
                _tell_one(listener, event)
        finally:
            _telling.reset(token)


def _tell_one(listener: "Listener", event: "Event") -> None:
    try:
        value = listener(event)
        if value is not None and isinstance(value, Coroutine):
            value.close()
            raise TypeError(f"{name_of(listener)} returned a coroutine, which nobody awaits")
    except Exception as error:
        import warnings

        name, kind = type(event).__name__, type(error).__qualname__
        text = f"a listener failed when told {name}: {kind}: {redact(text_of(error))}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
