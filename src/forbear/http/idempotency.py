"""`IdempotencyKey`: a header by which APIs recognise a repeated write and do not execute it again."""

from forbear.core.record import Record
from forbear.http.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

IN_USE = 409
"""The status by which an API says that the request with the same key is still being executed.

Source: draft-ietf-httpapi-idempotency-key-header, §2.7. A key that was used for another request is answered 422.
"""


class IdempotencyKey(Record):
    """A header by which hosts drop duplicates: `IdempotencyKey("Idempotency-Key", ["api.example.com"])`.

    A write to one of the hosts that carries the header may be repeated, since all its attempts carry the same key. The
    response 409 then means that an earlier attempt is still being executed, and is transient. A 422 is permanent.

    - `header`: the name of the header.
    - `hosts`: the names of the hosts that honour it, without scheme and port. None means every host that no service of
      forbear knows.
    - `add`: with True, a write without the header gets a new key, a UUID. By default only the caller's keys count.

    It does not apply to hosts of services that forbear knows: they have a header of their own, or none. TypeError or
    ValueError for wrong values.
    """

    __slots__ = ("header", "hosts", "add")

    header: str
    hosts: frozenset[str] | None
    add: bool

    def __init__(self, header: str, hosts: "str | Iterable[str] | None", add: bool = False) -> None:
        if not _is_name(header):
            raise TypeError(f'`header` must be the name of a header, such as "Idempotency-Key"; got {header!r}')
        if not isinstance(add, bool):
            raise TypeError(f"`add` must be True (send a new key with a write that has none) or False, got {add!r}")
        self._set(header=header, hosts=None if hosts is None else _hosts(hosts), add=add)

    def is_for(self, host: str) -> bool:
        """Return whether requests to `host`, which may have a port, may carry the key."""
        return self.hosts is None or Request("", host, "").origin[1] in self.hosts


def _is_name(header: object) -> bool:
    return isinstance(header, str) and header.isascii() and header.replace("-", "").replace("_", "").isalnum()


def _hosts(hosts: object) -> frozenset[str]:
    rule = '`hosts` must be names of hosts, such as "api.example.com" or ["api.example.com"], without scheme and port'
    listed: list[object]
    try:
        listed = [hosts] if isinstance(hosts, str) else [*hosts]  # type: ignore[misc]
    except TypeError:
        raise TypeError(f"{rule}; got {hosts!r}") from None
    if not listed:
        raise ValueError(f"{rule}; got none")
    names = set[str]()
    for host in listed:
        if not isinstance(host, str):
            raise TypeError(f"{rule}; got {host!r}")
        name = host.lower().strip("[]")
        is_ipv6 = name.count(":") > 1
        if not name or not name.isascii() or not name.isprintable() or set(name) & set(" /@?#*") or (
            ":" in name and not is_ipv6
        ):  # fmt: skip
            raise ValueError(f"{rule}; got {host!r}")
        names.add(name)
    return frozenset(names)
