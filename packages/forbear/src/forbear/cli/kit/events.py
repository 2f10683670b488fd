"""Print the events of a run to stderr, as `forbear run` and `forbear curl` do."""

from forbear.cli.kit.output import tell
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Scheduled
from forbear.text.duration import show


class EventPrinter:
    """Prints the events of a run to stderr; `attempts` is the maximum number of attempts, None for no limit."""

    def __init__(self, attempts: int | None) -> None:
        self._of = "" if attempts is None else f" of {attempts}"
        self._failure = ""

    def __call__(self, event: Event) -> None:
        """Print an event."""
        if isinstance(event, Failed):
            self._failure = event.text
        elif isinstance(event, Scheduled):
            tell(f"forbear: {self._failure}; attempt {event.attempt}{self._of} in {show(event.delay)}")
        elif isinstance(event, GaveUp):
            tell(f"{event.report.note}; last failure: {self._failure}")
        elif isinstance(event, BudgetDegraded):
            tell(f"forbear: {event.operation}: {event.text}; it asks again in {show(event.pause)}")
        elif isinstance(event, BudgetRestored):
            tell(f"forbear: {event.operation}: the server answers again, after {show(event.elapsed)}")
        else:
            tell(f"forbear: attempt {event.attempt} worked")
