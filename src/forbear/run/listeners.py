"""Who is told of a run: the listener of its policy and those of the whole process. It knows none of them."""

from forbear.core.report import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from forbear.core.events import Event

    Listener = Callable[[Event], object]


def _nobody() -> "tuple[Listener, ...]":
    return ()


_process: "list[Callable[[], tuple[Listener, ...]]]" = [_nobody]


def ask(who: "Callable[[], tuple[Listener, ...]]") -> None:
    """Ask `who` at the first failure of each run who listens in this process; it replaces the one asked before."""
    _process[0] = who


def of(own: "Listener | None") -> "tuple[Listener, ...]":
    """All who listen to a run whose policy tells `own`."""
    others = _process[0]()
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
