"""The journal: every request, and every change that took effect, in order."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from forbear.testing.cloud.operations import steps_of

_KEPT = 100_000
_LARGEST = 64 * 1024 * 1024
_SHARED = 256


@dataclass(frozen=True, slots=True)
class LoggedEffect:
    """One committed change; `request` is the number of the logged request, `token` its idempotency token."""

    sequence: int
    operation: str
    resource: str
    generation: int | None
    token: str | None
    request: int

    @property
    def size_of_texts(self) -> int:
        """Return the length of the texts to keep."""
        return len(self.resource) + len(self.token or "")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request and its result.

    `status` is that of the response, None if none was sent. `fault` is the name of the fault, None without one. `size`
    is how many bytes of the body arrived. `headers` contains no credentials; `authorized` is true if there were any.
    """

    number: int
    method: str
    path: str
    query: str
    operation: str | None
    headers: Mapping[str, str]
    size: int
    status: int | None
    fault: str | None
    authorized: bool

    @property
    def size_of_texts(self) -> int:
        """Return the length of the texts to keep, without short headers, which many requests share."""
        headers = sum(len(value) for value in self.headers.values() if len(value) > _SHARED)
        return len(self.path) + len(self.query) + headers


_Entry = TypeVar("_Entry", LoggedEffect, LoggedRequest)


class _Log(Generic[_Entry]):
    """The newest entries, at most 100 000 and at most 64 MiB of their texts; `total` counts all entries ever added.

    Other threads may read it at any time.
    """

    def __init__(self) -> None:
        self.total = 0
        self._entries: deque[_Entry] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[_Entry]:
        return iter(self._entries.copy())

    def __getitem__(self, index: int) -> _Entry:
        return self._entries[index]

    def add(self, entry: _Entry) -> None:
        """Append one entry, and drop the oldest beyond the limits."""
        self._entries.append(entry)
        self._size += entry.size_of_texts
        self.total += 1
        while len(self._entries) > _KEPT or self._size > _LARGEST:
            self._size -= self._entries.popleft().size_of_texts

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.total = self._size = 0


class Effects(_Log[LoggedEffect]):
    """The journal of committed changes, oldest first."""

    def count(self, operation: str | None = None, resource: str | None = None) -> int:
        """Return the number of changes by one operation, to one resource ("bucket/object"), or both."""
        return sum(
            (operation is None or effect.operation == operation) and (resource is None or effect.resource == resource)
            for effect in self
        )


class Requests(_Log[LoggedRequest]):
    """The log of requests, oldest first, without those that could not be parsed and those to /_cloud/."""

    def count(self, operation: str | None = None, *, method: str | None = None, status: int | None = None) -> int:
        """Return the number of requests; an insert includes its steps (`storage.objects.insert.start`, ...)."""
        return sum(
            (method is None or request.method == method) and (status is None or request.status == status)
            for request in self._of(operation)
        )

    def received(self, operation: str | None = None) -> int:
        """Return how many bytes of bodies arrived, also of requests that broke off."""
        return sum(request.size for request in self._of(operation))

    def _of(self, operation: str | None) -> Iterable[LoggedRequest]:
        steps = () if operation is None else steps_of(operation)
        return self if operation is None else (request for request in self if request.operation in steps)
