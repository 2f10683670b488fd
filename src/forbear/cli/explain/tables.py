"""The tables of operations under one shape, whatever their service. It reads them through their services only."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from forbear.cli.output import BadInput
from forbear.core.verdict import Safety
from forbear.services import table
from forbear.services.conditions import Alternatives, compiled, compiled_fields


@dataclass(frozen=True)
class Entry:
    """One operation.

    `conditions` make it safe, as an HTTP request or a command spells them, and `fields` as a gRPC message does;
    `disputed` may make it safe. `documented` are those of the service's own page (none: see the column), None where the
    page does not name it. `rpc` is its name in gRPC, if it has one. `columns` has the row as its file has it.
    """

    id: str
    rpc: str
    safety: Safety
    conditions: tuple[str, ...]
    fields: tuple[str, ...]
    disputed: tuple[str, ...]
    documented: tuple[str, ...] | None
    maybe_done: tuple[str, ...]
    is_read: bool
    source: str
    effect: str
    note: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """The operations of one API, or of all APIs of a service; `service` is the name in judgements."""

    service: str
    entries: tuple[Entry, ...]


def find(name: str) -> Table:
    """The table called `name`; BadInput where there is none."""
    if name not in _TABLES:
        raise BadInput(f"no such table: {name}", f"the tables are {', '.join(_TABLES)}")
    return _load(name)


def names() -> tuple[str, ...]:
    """The names of all tables."""
    return tuple(_TABLES)


def entry(service: str, operation: str | None) -> Entry | None:
    """What the tables say of an operation that a judgement names, None where they do not."""
    return _by_operation(service).get(operation or "")


@cache
def _by_operation(service: str) -> dict[str, Entry]:
    found = [entry for name in _TABLES if name.partition(".")[0] == service for entry in _load(name).entries]
    return {name: entry for entry in reversed(found) for name in (entry.rpc, entry.id) if name}


@cache
def _load(name: str) -> Table:
    return Table(name.partition(".")[0], tuple(_TABLES[name]()))


def _storage_json() -> Iterable[Entry]:
    from forbear.services.cloud_storage import json_api

    return _entries(json_api.operations(), ("method", "path"))


def _storage_xml() -> Iterable[Entry]:
    from forbear.services.cloud_storage import xml_api

    return _entries(xml_api.operations(), ("method", "resource", "query", "header"))


def _storage_grpc() -> Iterable[Entry]:
    from forbear.services.cloud_storage import grpc_api

    return _entries(grpc_api.operations(), ("stream",))


def _iam() -> Iterable[Entry]:
    from forbear.services.iam.service import operations

    for api in ("v1", "v2", "v3", "credentials"):
        yield from _entries(operations(api), ("method", "path", "rpc"))


def _memorystore() -> Iterable[Entry]:
    from forbear.services.memorystore.service import operations

    for api in ("redis", "valkey"):
        yield from _entries(operations(api), ("method", "path", "rpc"))


def _redis() -> Iterable[Entry]:
    from forbear.services.redis.judge import classify, commands

    for row in commands():
        yield Entry(
            id=row.command,
            rpc="",
            safety=row.safety,
            conditions=classify(row.command.split()).conditions,
            fields=(),
            disputed=(),
            documented=None,
            maybe_done=row.errors,
            is_read=row.kind == "read",
            source=row.source,
            effect=row.effect,
            note=row.note,
            columns={
                "command": row.command,
                "kind": row.kind,
                "safety": row.safety.value,
                "safe_if": _spelt(row.conditions),
                "reply": f"error: {'; '.join(row.errors)}" if row.errors else row.reply,
                "depends": row.depends,
                "memorystore": "blocked" if row.blocked else "",
                "listed": row.listed,
                "source": row.source,
                "effect": row.effect,
                "note": row.note,
            },
        )


_TABLES: dict[str, Callable[[], Iterable[Entry]]] = {
    "cloud_storage.json": _storage_json,
    "cloud_storage.xml": _storage_xml,
    "cloud_storage.grpc": _storage_grpc,
    "iam": _iam,
    "memorystore": _memorystore,
    "redis": _redis,
}


def _entries(rows: Iterable[table.Row], own: tuple[str, ...]) -> Iterable[Entry]:
    """The entries for rows with these columns of their own."""
    for row in rows:
        where = dict(zip(own, row.where, strict=True))
        alternatives = row.rule.conditions
        yield Entry(
            id=row.id,
            rpc=where.get("rpc", ""),
            safety=row.rule.safety,
            conditions=tuple(condition.text for condition in compiled(alternatives)),
            fields=tuple(condition.text for condition in compiled_fields(alternatives)),
            disputed=_words(row.disputed),
            documented=None if row.documented is None else _words(row.documented.conditions),
            maybe_done=row.maybe_done,
            is_read=row.is_read,
            source=row.source,
            effect=row.effect,
            note=row.note,
            columns={
                "id": row.id,
                **where,
                "safety": row.rule.safety.value,
                "safe_if": _spelt(alternatives),
                "disputed_if": _spelt(row.disputed),
                "documented": "" if row.documented is None else _rule(row.documented),
                "maybe_done": "|".join(row.maybe_done),
                "source": row.source,
                "effect": row.effect,
                "note": row.note,
            },
        )


def _words(alternatives: Alternatives) -> tuple[str, ...]:
    """Alternatives in words, those of HTTP before those of gRPC."""
    found = [condition.text for condition in compiled(alternatives)]
    return tuple(dict.fromkeys((*found, *(condition.text for condition in compiled_fields(alternatives)))))


def _rule(rule: table.Rule) -> str:
    return _spelt(rule.conditions) or rule.safety.value


def _spelt(alternatives: Alternatives) -> str:
    """Alternatives in the grammar of the tables."""
    return "|".join("&".join(f"{prefix}:{name}" for prefix, name in terms) for terms in alternatives)
