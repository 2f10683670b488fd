"""Make tables of operations, grouped by the resource that they act on."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from docs.generate.markdown import bullets, code, codes, table, text
from forbear.core.service import TableEntry

HEADERS = ("operation", "RPC", "request", "safe", "`documented`", "may mean success", "effect of a duplicate", "source")


def section(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Yield a list of the reads of an API, then a table of the other operations of each resource."""
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
        _maybe_done(entry),
        "" if entry.effect == "none" else entry.effect,
        entry.source,
    )


def _maybe_done(entry: TableEntry) -> str:
    """Return the responses that may mean success, and how a read settles it, if one can."""
    proof = entry.columns.get("settled_by", "")
    return ", ".join(entry.maybe_done) + (f" (settled by {proof})" if proof else "")


def _safe(entry: TableEntry) -> str:
    http, grpc = codes(entry.conditions, " or "), codes(entry.fields, " or ")
    if not entry.conditions and not entry.fields:
        return entry.safety.value
    return f"with {http} (gRPC: {grpc})" if http and grpc and http != grpc else f"with {http or grpc}"


def _documented(entry: TableEntry) -> str:
    """Return the safety according to the retry page, "" if no retry page names the operation."""
    if "documented" not in entry.columns or entry.documented is None:
        return ""
    safe = f"with {codes(entry.documented, ' or ')}" if entry.documented else entry.columns["documented"]
    return "the same" if safe == _safe(entry) else safe


def _notes(entries: list[TableEntry]) -> Iterator[str]:
    """Yield the notes on operations; operations with the same note share one item."""
    notes: dict[str, list[str]] = {}
    for entry in entries:
        for note in filter(None, (entry.note, _disputed(entry))):
            notes.setdefault(note, []).append(_verb(entry.id))
    for note, verbs in notes.items():
        yield f"{codes(verbs)}: {note}"


def _disputed(entry: TableEntry) -> str:
    if not entry.disputed:
        return ""
    return f"{codes(entry.disputed, ' or ')} is disputed; it counts as a condition only with `disputed=True`"


def _request(entry: TableEntry) -> str:
    """Describe a request of the XML API: its method, resource, subresources, and the header that selects it."""
    columns = entry.columns
    queries = ", ".join(f"?{query}" for query in columns["query"].split("|") if query)
    where = " or ".join(columns["resource"].split("|"))
    return f"{columns['method']} {where}{f' {code(queries)}' if queries else ''}{_with_header(columns['header'])}"


def _with_header(header: str) -> str:
    return f" with {code(header)}" if header else ""


def _resource(id: str) -> str:
    """Return the resource of an operation: its name without the last part, or without the method in the XML API."""
    if id.startswith("xml."):
        return " ".join(id.split(".")[:2])
    return _plain(id.rpartition("/" if "/" in id else ".")[0])


def _verb(id: str) -> str:
    if id.startswith("xml."):
        return ".".join(id.split(".")[2:])
    return id.rpartition("/" if "/" in id else ".")[2]


def _plain(id: str) -> str:
    """Remove the prefix that all names of the API have."""
    for prefix in ("storage.", "iam.", "iamcredentials.", "redis.projects.locations.", "xml."):
        if id.startswith(prefix):
            return id.removeprefix(prefix)
    return id
