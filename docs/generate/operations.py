"""Operations as tables, grouped by what they act on. What a row says comes from the table of the service."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from docs.generate.markdown import bullets, code, codes, table, text
from forbear.core.service import TableEntry

HEADERS = ("operation", "RPC", "request", "safe", "`documented`", "may mean that it worked", "a duplicate", "source")


def section(entries: Iterable[TableEntry]) -> Iterator[str]:
    """The reads of an API in a list, then a table for each resource that has more than reads."""
    listed = sorted(entries, key=lambda entry: _resource(entry.id))
    yield from text("**Reads**, always safe:")
    reads = groupby((entry for entry in listed if entry.is_read), key=lambda entry: _resource(entry.id))
    yield from bullets(f"{resource}: {codes(_verb(entry.id) for entry in group)}" for resource, group in reads)
    rest = (entry for entry in listed if not entry.is_read)
    for resource, group in groupby(rest, key=lambda entry: _resource(entry.id)):
        rows = list(group)
        yield from (f"### {resource}", "")
        yield from table(HEADERS, map(_row, rows))
        yield from bullets(_notes(rows))


def _row(entry: TableEntry) -> tuple[str, ...]:
    columns = entry.columns
    rpc = entry.rpc.rpartition("/")[2]
    return (
        code(_verb(entry.id)),
        code(rpc) if rpc and rpc != _verb(entry.id) else "",
        _request(entry) if "resource" in columns else "",
        _safe(entry),
        _documented(entry),
        ", ".join(entry.maybe_done),
        "" if entry.effect == "none" else entry.effect,
        entry.source,
    )


def _safe(entry: TableEntry) -> str:
    http, grpc = codes(entry.conditions, " or "), codes(entry.fields, " or ")
    if not entry.conditions and not entry.fields:
        return entry.safety.value
    return f"with {http} (gRPC: {grpc})" if http and grpc and http != grpc else f"with {http or grpc}"


def _documented(entry: TableEntry) -> str:
    """What the retry page says, where there is a page that names operations."""
    if "documented" not in entry.columns or entry.documented is None:
        return ""
    found = f"with {codes(entry.documented, ' or ')}" if entry.documented else entry.columns["documented"]
    return "the same" if found == _safe(entry) else found


def _notes(entries: list[TableEntry]) -> Iterator[str]:
    """What else is worth knowing, once for all operations that share it."""
    notes: dict[str, list[str]] = {}
    for entry in entries:
        for note in filter(None, (entry.note, _disputed(entry))):
            notes.setdefault(note, []).append(_verb(entry.id))
    for note, verbs in notes.items():
        yield f"{codes(verbs)}: {note}"


def _disputed(entry: TableEntry) -> str:
    if not entry.disputed:
        return ""
    return f"{codes(entry.disputed, ' or ')} is disputed, and counts only with `disputed=True`"


def _request(entry: TableEntry) -> str:
    """How a request of the XML API looks: method, what the path names, subresources, the header that matters."""
    columns = entry.columns
    queries = ", ".join(f"?{query}" for query in columns["query"].split("|") if query)
    where = " or ".join(columns["resource"].split("|"))
    return f"{columns['method']} {where}{f' {code(queries)}' if queries else ''}{_with_header(columns['header'])}"


def _with_header(header: str) -> str:
    return f" with {code(header)}" if header else ""


def _resource(id: str) -> str:
    """What an operation acts on: all of its name but the last part; the XML API's names have the method last."""
    if id.startswith("xml."):
        return " ".join(id.split(".")[:2])
    return _plain(id.rpartition("/" if "/" in id else ".")[0])


def _verb(id: str) -> str:
    if id.startswith("xml."):
        return ".".join(id.split(".")[2:])
    return id.rpartition("/" if "/" in id else ".")[2]


def _plain(id: str) -> str:
    """A name without the prefix that all of its API have."""
    for prefix in ("storage.", "iam.", "iamcredentials.", "redis.projects.locations.", "xml."):
        if id.startswith(prefix):
            return id.removeprefix(prefix)
    return id
