"""The journal: the newest requests, and the newest changes that took effect, in order."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from forbear_cloud.operations import steps_of

_KEPT = 100_000
_LARGEST = 64 * 1024 * 1024
_SHARED = 256


class LoggedEffect(NamedTuple):
    """One committed change of the resource by an operation; `sequence` numbers the changes from 1.

    `generation` is that of the bucket or object concerned, None without one. `token` is the idempotency token of the
    request, None without one. `request` is the number of the logged request.
    """

    sequence: int
    operation: str
    resource: str
    generation: int | None
    token: str | None
    request: int

    @property
    def size_of_texts(self) -> int:
        """Return how many characters `resource` and `token` have together.

        The log's limit is for the sum over its entries.
        """
        return len(self.resource) + len(self.token or "")


class LoggedRequest(NamedTuple):
    """One request and its result.

    `status` is that of the response, None if none was sent or the body of the request broke off. `fault` is the name of
    the fault, None without one. `size` is how many bytes of the body arrived. `headers` lacks Authorization,
    Proxy-Authorization, Cookie and encryption keys; `authorized` is true if there was an Authorization header.
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
        """Return how many characters the path, the query and the long header values have together.

        Header values of at most 256 characters do not count. The log's limit is for the sum over its entries.
        """
        headers = sum(len(value) for value in self.headers.values() if len(value) > _SHARED)
        return len(self.path) + len(self.query) + headers


_Entry = TypeVar("_Entry", LoggedEffect, LoggedRequest)


class _Log(Generic[_Entry]):
    """The newest entries, oldest first: at most 100 000, whose `size_of_texts` add up to at most 64 Mi characters.

    `total` counts all entries added since the last `clear`, also those dropped. Other threads may read the log at any
    time.
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
        """Append one entry, then drop the oldest ones until the log is within its limits."""
        self._entries.append(entry)
        self._size += entry.size_of_texts
        self.total += 1
        while len(self._entries) > _KEPT or self._size > _LARGEST:
            self._size -= self._entries.popleft().size_of_texts

    def clear(self) -> None:
        """Remove all entries, and set `total` to 0."""
        self._entries.clear()
        self.total = self._size = 0


class Effects(_Log[LoggedEffect]):
    """The journal of committed changes, oldest first, as LoggedEffect; only the newest are kept."""

    def count(self, operation: str | None = None, resource: str | None = None) -> int:
        """Return how many of the kept changes are by this operation and to this resource, such as "bucket/object".

        None, the default, stands for any. Unlike in `Requests`, an operation does not include its steps.
        """
        return sum(
            (operation is None or effect.operation == operation) and (resource is None or effect.resource == resource)
            for effect in self
        )


class Requests(_Log[LoggedRequest]):
    """The log of requests, oldest first, as LoggedRequest; only the newest are kept.

    It has no request that could not be parsed or was refused for its size or host, and none to /_cloud/.
    """

    def count(self, operation: str | None = None, *, method: str | None = None, status: int | None = None) -> int:
        """Return how many of the kept requests have this operation, HTTP method and response status.

        None stands for any. The operation "storage.objects.insert" includes its steps (`storage.objects.insert.start`,
        ...).
        """
        return sum(
            (method is None or request.method == method) and (status is None or request.status == status)
            for request in self._of(operation)
        )

    def received(self, operation: str | None = None) -> int:
        """Return how many bytes of bodies arrived with the kept requests of this operation, even if they broke off.

        None stands for any operation, and "storage.objects.insert" includes its steps.
        """
        return sum(request.size for request in self._of(operation))

    def _of(self, operation: str | None) -> Iterable[LoggedRequest]:
        steps = () if operation is None else steps_of(operation)
        return self if operation is None else (request for request in self if request.operation in steps)
