"""A store with a version that is enforced, and writes that get lost, come late or come in between; in memory only."""

from collections.abc import Callable
from typing import NamedTuple

MINE = "mine"


class Conflict(Exception):
    """Somebody else has written since the version was read."""


class Down(ConnectionError):
    """A transient failure: nobody can tell whether the request was executed."""


class Refused(Exception):
    """A transient failure that certainly kept the request from being executed."""


class Denied(Exception):
    """A permanent failure."""


class Doc(NamedTuple):
    """The stored document: a version and the changes made so far."""

    version: int
    changes: tuple[str, ...]


class Fault(NamedTuple):
    """One thing that goes wrong with a request: `first` happens to the store, then `error` is raised."""

    error: type[Exception] | None
    first: Callable[["Store", Doc], object] | None = None


def lost() -> Fault:
    """The write is executed, and its response is lost."""
    return Fault(Down, Store.commit)


def late() -> Fault:
    """The write seems to be lost, but is executed just before the next one."""
    return Fault(Down, Store.delay)


def overtaken() -> Fault:
    """Somebody else writes just before."""
    return Fault(None, Store.commit_other)


class Store:
    """Holds one document; `reads` and `writes` are what goes wrong with the first ones, None for nothing."""

    def __init__(self, reads: tuple[Fault | None, ...] = (), writes: tuple[Fault | None, ...] = ()) -> None:
        self.doc = Doc(1, ())
        self.on_its_way: list[Doc] = []
        self.reads = 0
        self.writes = 0
        self._reads = list(reads)
        self._writes = list(writes)

    def commit(self, doc: Doc) -> bool:
        """Store a document if its version is the current one."""
        if doc.version != self.doc.version:
            return False
        self.doc = Doc(doc.version + 1, doc.changes)
        return True

    def delay(self, doc: Doc) -> None:
        """Have a document arrive later."""
        self.on_its_way.append(doc)

    def commit_other(self, _: Doc) -> None:
        """Store somebody else's change."""
        self.doc = Doc(self.doc.version + 1, (*self.doc.changes, "other"))

    def read(self) -> Doc:
        """The document."""
        self.reads += 1
        self._strike(self._reads, self.doc)
        return self.doc

    def write(self, doc: Doc) -> Doc:
        """Store a changed document and return it with its new version; Conflict when it was read too early."""
        self.writes += 1
        while self.on_its_way:
            self.commit(self.on_its_way.pop(0))
        self._strike(self._writes, doc)
        if not self.commit(doc):
            raise Conflict
        return self.doc

    @property
    def applied(self) -> int:
        """Return how often the change was made; writes that are on their way arrive first."""
        while self.on_its_way:
            self.commit(self.on_its_way.pop(0))
        return self.doc.changes.count(MINE)

    def _strike(self, faults: list[Fault | None], doc: Doc) -> None:
        fault = faults.pop(0) if faults else None
        if fault is None:
            return
        if fault.first is not None:
            fault.first(self, doc)
        if fault.error is not None:
            raise fault.error


def modify(doc: Doc) -> Doc:
    """Make the change."""
    return Doc(doc.version, (*doc.changes, MINE))


def mine(doc: Doc) -> bool:
    """Return whether the change is there."""
    return MINE in doc.changes


def is_conflict(error: Exception) -> bool:
    """Return whether the write came too late."""
    return isinstance(error, Conflict)
