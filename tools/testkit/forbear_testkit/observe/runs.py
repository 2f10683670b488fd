"""Runs for listeners to hear of, in virtual time: failures, then a value or the end."""

from collections.abc import Callable

from forbear.core.backoff import Constant
from forbear.core.events import Event
from forbear.core.verdict import CONFLICT
from forbear.policy import retry
from forbear.testing import virtual_time

Listener = Callable[[Event], object]

SECRET = "s3cr3t"


class Busy(Exception):
    """An error that is worth another try."""


class Overtaken(Exception):
    """A conflict."""


def run(*outcomes: object, on_event: Listener | None = None, attempts: int = 3) -> None:
    """One run called "fetch", whose attempts end with these outcomes, one second apart."""
    left = iter(outcomes)

    def fetch() -> object:
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    policy = retry(
        on=lambda error: CONFLICT if isinstance(error, Overtaken) else isinstance(error, Busy),
        attempts=attempts,
        backoff=Constant(1),
        on_event=on_event,
        name="fetch",
    )
    with virtual_time():
        try:
            policy.call(fetch)
        except (Busy, Overtaken):
            return


def recovers(on_event: Listener | None = None) -> None:
    """Two failures, the first of which tells a secret, then success."""
    run(Busy(f"no answer from https://h/o?sig={SECRET}"), Busy("down"), "value", on_event=on_event)


def gives_up(on_event: Listener | None = None) -> None:
    """Failures to the end."""
    run(Busy("one"), Busy(f"token={SECRET}"), on_event=on_event, attempts=2)


def conflicts(on_event: Listener | None = None) -> None:
    """Overtaken at once."""
    run(Overtaken("by another"), on_event=on_event)
