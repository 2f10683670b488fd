"""Items: one thing to do each, what came of it, and who is told. They travel between processes and know no I/O."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol, Self

from forbear.core.events import Scheduled
from forbear.core.report import Report
from forbear.transfer.errors import cure, said
from forbear.transfer.objects import Object, Url

STREAM = "-"
"""Standard input as a source, standard output as a target."""


class Action(Enum):
    """What is to be done with an item."""

    COPY = "copy"
    DELETE = "delete"
    """Delete the target."""
    TOUCH = "touch"
    """Give the target the modification time of the source: the contents are the same."""
    SKIP = "skip"
    """Nothing, for the reason in its note."""
    REFUSE = "refuse"
    """Nothing, and that is a failure: its note says why."""


class Status(Enum):
    """What came of an item."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do, independent of all others: `source` and `target` are local paths, "-" or addresses in the cloud.

    `size` is in bytes, None where it is not known yet. `found` is what a listing said of the source in the cloud; of
    the target, where that is touched. `mtime` is the modification time that a touch sets, in epoch seconds. `root` is
    the local folder that must not be left, None where the user named the file itself. `generation` is the version that
    the target must have (0: nothing is there), None for whatever is there; `no_clobber` skips it where anything is
    there. `note` is why nothing is to be done, `hint` what to do about it.
    """

    source: Url | str
    target: Url | str
    action: Action = Action.COPY
    size: int | None = None
    found: Object | None = None
    mtime: float | None = None
    root: str | None = None
    generation: int | None = None
    no_clobber: bool = False
    note: str = ""
    hint: str | None = None

    def refused(self, reason: str | Exception) -> Self:
        """The same, as one that cannot be done."""
        if isinstance(reason, str):
            return replace(self, action=Action.REFUSE, note=reason)
        return replace(self, action=Action.REFUSE, note=said(reason), hint=cure(reason))

    def skipped(self, note: str) -> Self:
        """The same, as one that is left out."""
        return replace(self, action=Action.SKIP, note=note)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one item: `bytes` across and `seconds` it took, from the epoch second `began` on.

    `generation` and `crc32c` are those of the object that was written or read. Where it failed `error` says why, `hint`
    what to do about it, and `report` what was tried; where it was skipped `error` is the reason.
    """

    item: Item
    status: Status
    bytes: int = 0
    seconds: float = 0.0
    retries: int = 0
    generation: int | None = None
    crc32c: str | None = None
    error: str | None = None
    hint: str | None = None
    report: Report | None = None
    began: float = 0.0


@dataclass(slots=True)
class Summary:
    """What came of all items: how many, `bytes` across, `seconds` from the first to the last, `retries` on the way.

    `deleted` of those `done` were deletions.
    """

    done: int = 0
    deleted: int = 0
    skipped: int = 0
    bytes: int = 0
    seconds: float = 0.0
    retries: int = 0
    failures: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def failed(self) -> int:
        """How many failed."""
        return len(self.failures)

    @property
    def ok(self) -> bool:
        """Whether none failed."""
        return not self.failures

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.retries += outcome.retries
        self.bytes += outcome.bytes
        if outcome.status is Status.DONE:
            self.done += 1
            self.deleted += outcome.item.action is Action.DELETE
        elif outcome.status is Status.SKIPPED:
            self.skipped += 1
        else:
            self.failures.append(outcome)


class Listener(Protocol):
    """Told of everything in the event loop, by one item or another at a time; its methods must return at once.

    It may have a method `warned(text)`, which gets what is worth knowing though nothing has failed: that no state can
    be kept. Without one it is a RuntimeWarning.
    """

    def planned(self, items: int, size: int | None, complete: bool) -> None:
        """So many items are known by now, of `size` bytes in all (None: unknown); `complete` when there are no more."""
        ...

    def began(self, item: Item) -> None:
        """An item is at work."""
        ...

    def sized(self, item: Item, size: int) -> None:
        """It is known now how many bytes an item has; told only where the plan did not know."""
        ...

    def moved(self, item: Item, count: int) -> None:
        """So many more of its bytes are across; a negative count takes back bytes that must go again."""
        ...

    def retried(self, item: Item, event: Scheduled) -> None:
        """Something failed and will be tried again."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """An item is done, skipped or failed; one that had nothing to do did not begin."""
        ...


class QuietListener:
    """Tells nobody."""

    def planned(self, items: int, size: int | None, complete: bool) -> None:
        """Nothing."""

    def began(self, item: Item) -> None:
        """Nothing."""

    def sized(self, item: Item, size: int) -> None:
        """Nothing."""

    def moved(self, item: Item, count: int) -> None:
        """Nothing."""

    def retried(self, item: Item, event: Scheduled) -> None:
        """Nothing."""

    def ended(self, outcome: Outcome) -> None:
        """Nothing."""


QUIET = QuietListener()
