"""The rules for writes of Google's APIs, over compiled protos: which RPC may be executed twice, and with what set.

`find` yields what the rules say of one RPC: a kind, and the fields of the request that must be set.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from forbear.grpc.definitions import Definition
from forbear.services.rpcs import rules
from tools.google_protos import Field, Protos, Rpc

KINDS = ("read", "key", "create", "delete", "update", "etag", "policy")
"""A read by POST; request_id; Create with an id; Delete; Update with a mask, without and with etag; setIamPolicy."""

MASK = "google.protobuf.FieldMask"
_PROMISE = re.compile(
    r"idempoten|ignore|aip-?155|aip\.dev/155|duplicat|\bretry|existing request id returns", re.IGNORECASE
)
_NO_PROMISE = re.compile(
    r"debug|no effect|concurrent|\btrac(?:e|ing)\b|\blogg|not idempotent|last successful operation|allows you to"
    r"|must not be set",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"\bappend|\brotat|\brestart|\breboot|\bnotif|\be-?mails?\b|\btriggers?\b|\bnew (?:\w+ )?(?:version|revision)"
    r"|creates? (?:a|an|the) |\bincrement|\badds? |\bsends?\b|\bstarts? |\bresets? |\bleases?\b|\bverif|is performed",
    re.IGNORECASE,
)
_DEPLOYED = re.compile(r"revision|terraform|^build_(?:config|id)|source_archive|^version_id")
"""Fields of a resource of which each update may build, deploy or record a new version."""
_COMES_BACK = re.compile(r"re-?appear|re-?creat|comes? back|regenerat|new revision", re.IGNORECASE)
_NO_ID = re.compile(r"output only|ignored otherwise", re.IGNORECASE)
_NOT_BY_ID = re.compile(r"not (?:\w+ )*idempotent|\bverif", re.IGNORECASE)
_MANY = frozenset({"filter", "query", "names", "parent", "ids", "all", "delete_all", "regex", "pattern", "purge"})
_MORE = re.compile(r"force|cascad|purge|delete_\w+|children|content|recursive|permanent")
_GUARDS = ("etag", "uid")
_DEEPEST = 3
_VARIABLE = re.compile(r"\{([\w.]+)(?:=([^}]*))?\}")


class Found(NamedTuple):
    """A rule that an RPC fits: it may be executed twice if all `fields` are set, and none of `unset` is true."""

    kind: str
    fields: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    span: int = 0


def find(rpc: Rpc, protos: Protos) -> Iterator[Found]:
    """Yield what the rules say of an RPC that is no GET, at most once a kind."""
    methods = {binding.method for binding in rpc.bindings}
    if rpc.client_streaming or methods == {"GET"}:
        return
    for rule in (_find_read, _find_key, _find_create, _find_delete, _find_update, _find_policy):
        found = rule(rpc, methods, protos)
        if found is not None:
            yield found


def _find_read(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    definition = Definition(0, tuple(methods), frozenset(_names(rpc.fields, protos, _DEEPEST)), rpc.file)
    is_read = rpc.method == "TestIamPermissions" or rules.is_read_by_post(rpc.method, definition)
    return Found("read") if is_read else None


def _names(fields: tuple[Field, ...], protos: Protos, depth: int) -> set[str]:
    names = {field.name for field in fields}
    for field in fields if depth > 1 else ():
        names |= _names(protos.messages.get(field.type, ()), protos, depth - 1)
    return names


def _find_key(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    field = field_of(rpc, "request_id")
    if field is None or field.type != "string" or not promises(field.comment):
        return None
    span = re.search(r"(\d+) (minute|hour)", field.comment)
    seconds = 0 if span is None else int(span[1]) * (60 if span[2] == "minute" else 3600)
    return Found("key", ("request_id",), span=seconds)


def promises(comment: str) -> bool:
    """Return whether the comment of a request_id promises that a second request with it is not executed."""
    return _PROMISE.search(comment) is not None and _NO_PROMISE.search(comment) is None


def _find_create(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    noun = re.fullmatch(r"(?:Create|Insert)(\w+)", rpc.method)
    if noun is None or not methods <= {"POST", "PUT"} or _NOT_BY_ID.search(rpc.comment):
        return None
    snake = to_snake(noun[1])
    for field in rpc.fields:
        stem = field.name.removesuffix("_id")
        is_id = field.type == "string" and not field.repeated and _NO_ID.search(field.comment) is None
        if is_id and stem != field.name and _ends_with(snake, stem):
            return Found("create", (field.name,))
    paths = [binding.path for binding in rpc.bindings if binding.method == "PUT"]
    named = [match[1] for path in paths for match in _VARIABLE.finditer(path)]
    return Found("create", tuple(named[-1:])) if named and named[-1].endswith("name") else None


def _ends_with(snake: str, stem: str) -> bool:
    return snake == stem or snake.endswith(f"_{stem}")


def _find_delete(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    if not re.fullmatch(r"Delete(?!All)(?:[A-Z]\w*)?", rpc.method) or methods != {"DELETE"}:
        return None
    variables = [list(_VARIABLE.finditer(binding.path)) for binding in rpc.bindings]
    if not all(each and binding.path.endswith("}") for each, binding in zip(variables, rpc.bindings, strict=True)):
        return None
    targets = {each[-1][1] for each in variables}
    if len(targets) != 1 or any((each[-1][2] or "*").rpartition("/")[2] not in ("*", "**") for each in variables):
        return None
    in_path = {match[1] for each in variables for match in each}
    names = {field.name for field in rpc.fields}
    target = targets.pop()
    if target == "parent" or (names - in_path) & _MANY or _COMES_BACK.search(rpc.comment):
        return None
    if any(field.repeated or (field.type != "string" and field.name in in_path) for field in rpc.fields):
        return None
    guards = tuple(name for name in _GUARDS if name in names)
    unset = tuple(sorted(name for name in names if _MORE.search(name)))
    return Found("delete", (*sorted(in_path), *guards), unset)


def _find_update(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    if not re.match(r"(?:Update|Patch|Set)(?:[A-Z]|$)", rpc.method) or not methods <= {"PATCH", "PUT", "POST"}:
        return None
    masks = [field for field in rpc.fields if field.type == MASK and re.search(r"update|field_mask|^mask", field.name)]
    if len(masks) != 1 or masks[0].repeated or _ACTS.search(rpc.comment) or field_of(rpc, "email") is not None:
        return None
    for field in rpc.fields:
        if field.name == "etag":
            return Found("etag", (masks[0].name, "etag"))
        if any(inner.name == "etag" for inner in protos.messages.get(field.type, ())):
            return Found("etag", (masks[0].name, f"{field.name}.etag"))
    inner = [each.name for field in rpc.fields for each in protos.messages.get(field.type, ())]
    return None if any(map(_DEPLOYED.search, inner)) else Found("update", (masks[0].name,))


def _find_policy(rpc: Rpc, methods: set[str], protos: Protos) -> Found | None:
    return Found("policy", ("policy.etag",)) if rpc.method == "SetIamPolicy" else None


def field_of(rpc: Rpc, name: str) -> Field | None:
    """Return a field of the request by its name, None without one."""
    return next((field for field in rpc.fields if field.name == name), None)


def to_snake(name: str) -> str:
    """Return a name in camel case with underscores."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
