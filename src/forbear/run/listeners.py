"""Who is told of a run: the listener of its policy and those of the whole process. It knows none of them."""

from contextvars import ContextVar

from forbear.core.report import text_of

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


def tell(listeners: "tuple[Listener, ...]", event: "Event") -> None:
    """A listener that fails must not turn a success into a failure, nor hide the error that it is told of."""
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:
            import warnings

            told, kind = type(event).__name__, type(error).__qualname__
            text = f"a listener failed when told {told}: {kind}: {text_of(error)}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
