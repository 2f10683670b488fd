"""The tables of all services, found through the registry."""

from functools import cache
from itertools import chain

from forbear.cli.output import BadInput
from forbear.core.service import TableEntry
from forbear.services import registry


def find(name: str) -> tuple[TableEntry, ...]:
    """Return the entries of the table `name`. Raises BadInput where there is no such table."""
    service = name.partition(".")[0]
    tables = registry.service(service).tables() if service in registry.names() else {}
    if name not in tables:
        raise BadInput(f"no such table: {name}", f"the tables are {', '.join(names())}")
    return tuple(tables[name])


def names() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(name for service in registry.names() for name in registry.service(service).tables())


def entry(service: str, operation: str | None) -> TableEntry | None:
    """Return the entry of an operation that a judgement names, None where no table has it."""
    return _by_operation(service).get(operation or "") if service in registry.names() else None


@cache
def _by_operation(service: str) -> dict[str, TableEntry]:
    tables = registry.service(service).tables().values()
    entries = list(chain.from_iterable(tables))
    return {name: entry for entry in reversed(entries) for name in (entry.rpc, entry.id) if name}
