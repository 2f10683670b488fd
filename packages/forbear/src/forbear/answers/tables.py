"""The tables of operations of all services: their names, their entries, and the words for their conditions."""

from collections.abc import Sequence
from functools import cache
from itertools import chain

from forbear.answers.errors import NoAnswer
from forbear.core.service import TableEntry
from forbear.services import registry


def find(name: str) -> tuple[TableEntry, ...]:
    """Return the entries of the table `name`, such as "cloud_storage.json"; raise NoAnswer if there is none."""
    service = name.partition(".")[0]
    entries = registry.service(service).tables().get(name) if service in registry.names() else None
    if entries is None:
        raise NoAnswer(f"no such table: {name}", f"the tables are {', '.join(names())}")
    return tuple(entries)


def names() -> tuple[str, ...]:
    """Return the names of all tables of all services."""
    return tuple(name for service in registry.names() for name in registry.service(service).tables())


def entry(service: str, operation: str | None) -> TableEntry | None:
    """Return the entry of an operation of `service`, by its id or gRPC name; None if no table has it."""
    return _index_operations(service).get(operation or "") if service in registry.names() else None


@cache
def _index_operations(service: str) -> dict[str, TableEntry]:
    entries = list(chain.from_iterable(registry.service(service).tables().values()))
    return {name: entry for entry in reversed(entries) for name in (entry.rpc, entry.id) if name}


def join_conditions(conditions: Sequence[str]) -> str:
    """Join alternative conditions, any one of which is enough, by " or " ("; or " if one has a comma or an "and")."""
    return ("; or " if any(", " in text or " and " in text for text in conditions) else " or ").join(conditions)
