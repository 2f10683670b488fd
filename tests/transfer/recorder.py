"""A listener that writes down all it is told."""

from forbear.core.events import Scheduled
from forbear.transfer.items import Item, Outcome, Status


class Recorder:
    """What a listener was told, in order."""

    def __init__(self) -> None:
        self.plans: list[tuple[int, int | None, bool]] = []
        self.begun: list[Item] = []
        self.sizes: dict[str, int] = {}
        self.bytes = 0
        self.retries: list[Scheduled] = []
        self.outcomes: list[Outcome] = []

    def planned(self, items: int, size: int | None, complete: bool) -> None:
        self.plans.append((items, size, complete))

    def began(self, item: Item) -> None:
        self.begun.append(item)

    def sized(self, item: Item, size: int) -> None:
        self.sizes[str(item.source)] = size

    def moved(self, item: Item, count: int) -> None:
        self.bytes += count

    def retried(self, item: Item, event: Scheduled) -> None:
        self.retries.append(event)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def said(self, status: Status) -> dict[str, str]:
        """What is said of each source that came out so."""
        return {str(one.item.source): one.error or "" for one in self.outcomes if one.status is status}
