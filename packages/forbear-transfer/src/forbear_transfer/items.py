"""Items, each of which is one thing to do, and their outcomes. They can be sent to other processes."""

from collections.abc import AsyncGenerator, Iterable
from enum import Enum
from typing import Self, TypeVar

from forbear.adapters import dataclass, field, replace
from forbear.events import Report
from forbear_transfer.encryption import DEFAULT_ENCRYPTION, ObjectEncryption
from forbear_transfer.errors import describe, hint_of
from forbear_transfer.files import FileIdentity
from forbear_transfer.metadata import ObjectMetadata
from forbear_transfer.objects import Object, Url

_T = TypeVar("_T")

STREAM = "-"
"""Standard input as a source, standard output as a target."""


class Action(Enum):
    """The action that an item asks for. Example: see `plan`."""

    COPY = "copy"
    DELETE = "delete"
    """Delete the target. With an `object`, delete exactly that version, and fail if it is not there."""
    MOVE = "move"
    """Copy the source, an object, to the target in the cloud; then delete exactly the version that was copied."""
    TOUCH = "touch"
    """Give the target the modification time or mode of the source, or both; the contents are the same."""
    UPDATE = "update"
    """Give the target, an object, the metadata of the item; its contents and all else stay."""
    SKIP = "skip"
    """Do nothing, for the reason in the item's note."""
    REFUSE = "refuse"
    """Do nothing and count as failed, for the reason in the item's note."""


class Status(Enum):
    """The result of an item: done, skipped or failed. Example: see `execute`."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(slots=True)  # to make a frozen one takes ten times as long
class Item:
    """One thing to do, independent of all other items.

    `source` and `target` are local paths, "-" or addresses in the cloud. `size` is in bytes, None if it is not known
    yet. `object` is what a listing returned for the source; with TOUCH, for the source or the target, depending on
    which is in the cloud; with DELETE, for the target. `mtime` is the modification time that TOUCH sets, in epoch
    seconds, and `mode` the permissions; None leaves them alone. `root` is the local folder that the target must not
    leave, None if the user named the file itself. `generation` is the generation that the target must have (0: no
    object exists), None for any. `no_clobber` skips the item if the target exists. `note` says why the item is skipped
    or refused, and `hint` what to do about it. `metadata` is what the new object gets, and `encryption` has the keys
    for both objects. An upload is compressed with `gzip`. A download is stored as it is, gzip included, without
    `decode`. With `is_required`, a user has named the generation, and not a listing. `listed` is the version of a local
    target that may be replaced or deleted, () if none was there, None for any. `verify_source` reads a file twice.
    `preserve_posix` keeps the permissions of a file. With `is_absent`, the source does not exist. Example: see `plan`.
    """

    source: Url | str
    target: Url | str
    action: Action = Action.COPY
    size: int | None = None
    object: Object | None = None
    mtime: float | None = None
    root: str | None = None
    generation: int | None = None
    no_clobber: bool = False
    note: str = ""
    hint: str | None = None
    metadata: ObjectMetadata | None = None
    gzip: bool = False
    decode: bool = True
    is_required: bool = False
    encryption: ObjectEncryption | None = None
    listed: FileIdentity | None = None
    verify_source: bool = False
    is_absent: bool = False
    preserve_posix: bool = False
    mode: int | None = None

    def refuse(self, reason: str | Exception) -> Self:
        """Return a copy of the item with the action REFUSE, so that it counts as failed; `reason` becomes its note.

        If `reason` is an error, the note is the error's text, and the hint is that of the error.
        """
        if isinstance(reason, str):
            return replace(self, action=Action.REFUSE, note=reason)
        return replace(self, action=Action.REFUSE, note=describe(reason), hint=hint_of(reason))

    def skip(self, note: str) -> Self:
        """Return a copy of the item with the action SKIP and this note, which says why it is skipped."""
        return replace(self, action=Action.SKIP, note=note)


async def yield_each(values: Iterable[_T]) -> AsyncGenerator[_T]:
    """Yield values that are known, where those that a listing finds could be."""
    for one in values:
        yield one


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOptions:
    """The options that a command has for each of its items; `packed` leaves gzip as it is, the others are in Item.

    `metadata` is what new objects get, None for nothing in particular. `generation` is one that the user has named.
    """

    metadata: ObjectMetadata | None = None
    encryption: ObjectEncryption = DEFAULT_ENCRYPTION
    gzip: bool = False
    packed: bool = False
    no_clobber: bool = False
    generation: int | None = None
    verify_source: bool = False
    preserve_posix: bool = False

    def apply_to(self, item: Item) -> Item:
        """Give these options to a new item, and return it."""
        if self.generation is not None:
            item.generation, item.is_required = self.generation, True
        item.metadata = self.metadata
        item.gzip, item.decode = self.gzip, not self.packed
        item.encryption = self.encryption or None
        item.no_clobber = self.no_clobber
        item.verify_source, item.preserve_posix = self.verify_source, self.preserve_posix
        return item


@dataclass(slots=True)
class Outcome:
    """The outcome of one item: the `bytes` transferred and the `seconds` it took, from the epoch second `began` on.

    `bytes` is the size of the object that was written or read, and 0 if none was. `generation` and `crc32c` are those
    of that object, else None. `retries` counts repeated attempts. If the item failed, `error` says why, `hint` is the
    cure, and `report` has the attempts. If it was skipped, `error` is the reason. Example: see `execute`.
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
    """The sums over all items: their number by status, `bytes` transferred, and `retries`.

    `seconds` is the time that the runs took. `deleted` counts those of the `done` items that were deletions. `failures`
    has the outcomes of the failed items. Example: see `cp`.
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
        """The number of items that failed."""
        return len(self.failures)

    @property
    def ok(self) -> bool:
        """True if no item failed."""
        return not self.failures

    def add(self, outcome: Outcome) -> None:
        """Add one outcome to the sums, and to `failures` if it failed. `seconds` does not change."""
        self.retries += outcome.retries
        self.bytes += outcome.bytes
        if outcome.status is Status.DONE:
            self.done += 1
            self.deleted += outcome.item.action is Action.DELETE
        elif outcome.status is Status.SKIPPED:
            self.skipped += 1
        else:
            self.failures.append(outcome)
