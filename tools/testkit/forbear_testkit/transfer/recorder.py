"""Listeners for tests: one that records all events, and a base for those that act on some."""

from forbear.core.events import Scheduled
from forbear_transfer.items import Item, Outcome, Status
from forbear_transfer.progress import Finished, Moved, Planned, Retried, Sized, Started, TransferEvent, Warned


class Receiver:
    """A listener that calls a method of its own for each kind of event of one transfer."""

    def __call__(self, event: TransferEvent) -> None:
        match event:
            case Sized():
                self.sized(event.size)
            case Moved():
                self.moved(event.bytes)
            case Retried():
                self.retried(event.scheduled)
            case _:
                pass

    def sized(self, size: int) -> None:
        pass

    def moved(self, count: int) -> None:
        pass

    def retried(self, event: Scheduled) -> None:
        pass


class Recorder:
    """The events of a run by kind, in order; call it with each event."""

    def __init__(self) -> None:
        self.plans: list[tuple[int, int | None, bool]] = []
        self.begun: list[Item] = []
        self.sizes: dict[str, int] = {}
        self.bytes = 0
        self.retries: list[Scheduled] = []
        self.outcomes: list[Outcome] = []
        self.warnings: list[str] = []

    def __call__(self, event: TransferEvent) -> None:
        match event:
            case Planned():
                self.plans.append((event.items, event.size, event.complete))
            case Started():
                self.begun.append(event.item)
            case Sized():
                self.sizes["" if event.item is None else str(event.item.source)] = event.size
            case Moved():
                self.bytes += event.bytes
            case Retried():
                self.retries.append(event.scheduled)
            case Finished():
                self.outcomes.append(event.outcome)
            case Warned():
                self.warnings.append(event.text)

    def said(self, status: Status) -> dict[str, str]:
        """Return the reason for each source whose item has this status."""
        return {str(one.item.source): one.error or "" for one in self.outcomes if one.status is status}
