"""Find out by reading back if a request of the JSON API was executed: `targets` and `settle`.

Both are pure. The column `settled_by` of the table says how an operation is proven:

- `absence`: nothing is live under the name. A DELETE of one generation also needs that this generation is gone.
- `fields`: the resource has the fields that were sent.
- `content`: the object has the size, the MD5 and the fields that were sent.
- `copy`: the object has the size, the CRC32C and the fields of its source, which is read first.
- `listing`: the project's list has the bucket, with the fields that were sent. Names are global: a read of the bucket
  might show another project's.
- `policy`, `lock`, `generation`: the bindings, a locked retention policy, the generation of a bucket that was restored.
- `author`: the state proves nothing, but the user's `mine` may recognize the resource.
- empty: never. The id is the server's, the response has secrets, or there is nothing to compare.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from json import dumps
from typing import Any, TypeAlias
from urllib.parse import quote

from forbear.core.dataclass import dataclass
from forbear.core.service import Judgement
from forbear.http import preconditions
from forbear.http.request import Request
from forbear.services.cloud_storage.json_api import INSERT, NAME, operations
from forbear.services.cloud_storage.sent import (
    COPIED,
    SentWrite,
    find_difference,
    is_same_content,
    read_list,
    read_object,
)

Mine: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
"""The user's function: whether the resource that was read was written by the request that sent the other one."""

HINT = " (settle= reads back whether it did)"
"""The words for the note on an error that the option `settle` might have settled."""

_PASSED = ("userProject", "quotaUser", "key", "access_token", "oauth_token", "prettyPrint", "projection")
"""The parameters of a request that its reads have, too."""

_COMPARED = frozenset({
    *_PASSED, "alt", "fields", "uploadType", "name", "project", "generation", "sourceGeneration", "rewriteToken",
    "maxBytesRewrittenPerCall", "kmsKeyName", "destinationKmsKeyName", "contentEncoding", "enableObjectRetention",
})  # fmt: skip
"""The parameters that are compared, or change nothing that a read shows. Preconditions belong to them, too."""


class Finding(Enum):
    """The answers: the request was executed, or it was not, or neither is proven."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """The response to a read: its status, and the JSON object in its body, None where there is none."""

    status: int
    resource: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The answer of `settle`. If it is DONE, `status` and `body` are the response that the request gets.

    `why` says in words what is not proven, "" if the request was done.
    """

    finding: Finding
    why: str = ""
    status: int = 200
    body: bytes = b""


@cache
def proofs() -> Mapping[str, str]:
    """Return how each operation is proven, by its id: the column `settled_by`."""
    return {row.id: row.where[2] for row in operations()}


def can_settle(judgement: Judgement) -> bool:
    """Return whether the table says how a read proves the operation."""
    return judgement.service == NAME and bool(proofs().get(judgement.operation or ""))


def targets(operation: str, sent: Request, mine: Mine | None = None) -> tuple[str, ...]:
    """Return the request targets of the reads that settle a request, in order; () if nothing can.

    `mine` is the user's function, None if the state counts, whoever made it.
    """
    return _plan(operation, sent, mine)[0]


def settle(operation: str, sent: Request, read: Sequence[Reading], mine: Mine | None = None) -> Settlement:
    """Return whether `sent`, a request of the `operation`, was executed, by the responses to the reads of `targets`.

    With `mine` that function decides, otherwise the state. TypeError if `mine` returns no bool.
    """
    places, what = _plan(operation, sent, mine)
    if isinstance(what, str):
        return Settlement(Finding.UNKNOWN, what)
    proof = proofs()[operation]
    if len(read) != len(places):
        return Settlement(Finding.UNKNOWN, "a read is missing")
    if proof == "absence":
        return settle_absence(read)
    refused = next((each for each in read if each.status != 200 or each.resource is None), None)
    if refused is not None:
        gone = refused is read[-1] and refused.status == 404
        return Settlement(Finding.NOT_DONE if gone else Finding.UNKNOWN, f"the read answered {refused.status}")
    found = _find_listed(read[-1].resource or {}, what) if proof == "listing" else read[-1].resource
    if found is None:
        return Settlement(Finding.NOT_DONE, "the project has no such bucket")
    source = read[0].resource or {} if len(read) > 1 else None
    return settle_found(
        what.fields,
        found,
        mine,
        lambda: _find_reason(proof, operation, what, source, found),
        _make_response(operation, found),
    )


def settle_found(
    sent: Any, found: Any, mine: Callable[[Any, Any], bool] | None, find_reason: Callable[[], str], body: bytes = b""
) -> Settlement:
    """Return whether what was `found` is what was `sent`: by `mine`, else if `find_reason` has none against it.

    `body` is that of the response. TypeError if `mine` returns no bool.
    """
    if mine is None:
        why = find_reason()
    else:
        is_mine = mine(sent, found)
        if not isinstance(is_mine, bool):
            raise TypeError(f"`settle` must return True or False, got {is_mine!r}")
        why = "" if is_mine else "the resource is not the one that `settle` recognizes"
    return Settlement(Finding.NOT_DONE, why) if why else Settlement(Finding.DONE, body=body)


def _plan(operation: str, sent: Request, mine: Mine | None) -> tuple[tuple[str, ...], SentWrite | str]:
    """Return the targets of the reads and what was sent, or no targets and the reason why nothing settles it."""
    proof = proofs().get(operation, "")
    path, query = preconditions.split(sent.target)
    if not proof or (proof == "absence" and mine is not None):
        return (), "no read can prove it"
    if proof == "author" and mine is None:
        return (), "its state does not show what it was made of; only a function as `settle` can recognize it"
    what = SentWrite.of(sent, query, is_upload=operation == INSERT)
    if what is None:
        return (), "its body cannot be compared"
    if mine is None:
        if operation.endswith(".patch") and what.is_empty:
            return (), "it sent nothing that a read could show"
        names = {pair.partition("=")[0] for pair in query.split("&")} - {""}
        odd = next((name for name in sorted(names) if name not in _COMPARED and not name.startswith("if")), None)
        if odd is not None:
            return (), f"what {odd} makes of it cannot be compared"
    places = _list_places(operation, proof, path, query, what, by_state=mine is None)
    return (places, what) if places else ((), "its name, or a source that it was made of, is not known")


def _list_places(
    operation: str, proof: str, path: str, query: str, what: SentWrite, *, by_state: bool
) -> tuple[str, ...]:
    """Return the targets of the reads, () if a name is missing or nothing would be proven."""
    parts = path.removeprefix("/resumable").removeprefix("/upload").split("/")
    generation = preconditions.value(query, "generation")
    full = "acl" in what.fields or "defaultObjectAcl" in what.fields
    if proof == "listing":
        project, name = preconditions.value(query, "project"), what.name
        listed = f"project={quote(project or '', safe='')}&prefix={quote(name or '', safe='')}&maxResults=1"
        return (_make_target(parts, query, listed, full=full),) if project and name else ()
    if operation in _IN_COLLECTION:
        if not what.name:
            return ()
        parts = [*parts, quote(what.name, safe="")]
    elif operation in ("storage.objects.copy", "storage.objects.rewrite"):
        source, parts = parts[:7], [*parts[:3], *parts[8:]]
        if by_state:
            old = preconditions.value(query, "sourceGeneration")
            if source == parts:
                return ()  # its content before is not known any more
            return (_make_target(source, query, f"generation={old}" if old else ""), _make_target(parts, query))
    elif operation == "storage.objects.move":
        parts = [*parts[:5], *parts[8:]]
    elif operation in _WITH_VERB:
        parts = parts[:-1]
    live = _make_target(parts, query, full=full)
    if operation == "storage.objects.restore" and by_state:
        return (_make_target(parts, query, f"generation={generation}&softDeleted=true"), live) if generation else ()
    if generation and operation == "storage.objects.delete":
        return _make_target(parts, query, f"generation={generation}"), live
    if generation and operation in ("storage.objects.patch", "storage.objects.update"):
        return (_make_target(parts, query, f"generation={generation}", full=full),)
    if proof == "policy":
        return (_make_target(parts, query, "optionsRequestedPolicyVersion=3"),)
    return (live,)


_IN_COLLECTION = (INSERT, "storage.folders.insert", "storage.managedFolders.insert")
_WITH_VERB = (
    "storage.objects.compose", "storage.objects.restore", "storage.buckets.restore",
    "storage.buckets.lockRetentionPolicy",
)  # fmt: skip


def _make_target(parts: Sequence[str], query: str, more: str = "", *, full: bool = False) -> str:
    """Return the target of a read: the path, what the request's query has for any request, and `more`."""
    passed = [pair for pair in query.split("&") if pair.partition("=")[0] in _PASSED]
    if full:
        passed = [*(pair for pair in passed if not pair.startswith("projection=")), "projection=full"]
    joined = "&".join(filter(None, (*passed, more)))
    return "/".join(parts) + (f"?{joined}" if joined else "")


def settle_absence(read: Sequence[Reading]) -> Settlement:
    """Return DONE if nothing is there: 404, or an HMAC key, which stays for a while, in the state DELETED."""
    for each in read:
        if each.status == 200 and (each.resource or {}).get("state") != "DELETED":
            return Settlement(Finding.NOT_DONE, "something is live under the name")
        if each.status not in (200, 404):
            return Settlement(Finding.UNKNOWN, f"the read answered {each.status}")
    return Settlement(Finding.DONE, status=204)


def _find_listed(resource: Mapping[str, Any], what: SentWrite) -> Mapping[str, Any] | None:
    entries = map(read_object, read_list(resource.get("items")))
    return next((each for each in entries if each.get("name") == what.name), None)


def _find_reason(
    proof: str, operation: str, what: SentWrite, source: Mapping[str, Any] | None, found: Mapping[str, Any]
) -> str:
    """Return why the state that was read is not the one that was sent, "" if it is."""
    if proof == "lock":
        is_locked = read_object(found.get("retentionPolicy")).get("isLocked") is True
        return "" if is_locked else "the retention policy is not locked"
    if proof == "generation":
        same = what.generation is not None and str(found.get("generation")) == what.generation
        return "" if same else "the bucket has another generation"
    if proof == "policy":
        return "" if _list_bindings(what.fields) == _list_bindings(found) else "the policy has other bindings"
    if proof == "content" and not what.has_content_of(found):
        return "the object has another content"
    fields = what.fields
    if source is not None:
        if not is_same_content(source, found):
            return "the object has another content than its source"
        fields = fields or {name: source[name] for name in COPIED if name in source}
    whole = operation.endswith((".update", ".insert")) or source is not None
    odd = find_difference(fields, found, whole=whole) or what.find_odd_setting(found)
    return f"{odd} is not as it was sent" if odd else ""


def _list_bindings(policy: Mapping[str, Any]) -> list[tuple[str, list[str], str]]:
    """Return the bindings of an IAM policy in a form that can be compared; the order of members does not matter."""
    bindings = map(read_object, read_list(policy.get("bindings")))
    return sorted(
        (
            str(each.get("role")),
            sorted(map(str, read_list(each.get("members")))),
            dumps(each.get("condition"), sort_keys=True),
        )
        for each in bindings
    )


def _make_response(operation: str, found: Mapping[str, Any]) -> bytes:
    """Return the body that a request which was executed gets: the resource as it was read."""
    body: Mapping[str, Any] = found
    if operation == "storage.objects.rewrite":
        size = str(found.get("size"))
        progress = {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True}
        body = {**progress, "resource": found}
    return dumps(body).encode()
