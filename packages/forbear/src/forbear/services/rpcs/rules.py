"""Judge an RPC that no table of a service has.

The rules, in this order:

1. Outside of Google's packages only annotations count: `idempotency_level`, then `google.api.http`. A GET is a read;
   PUT and DELETE may be executed twice by RFC 9110. Of several bindings the most dangerous one counts. Names,
   signatures and `request_id` prove nothing there.
2. In Google's packages `_judge_google` decides, by the first rule that fits. `google.py` has the writes.
3. Without a definition, and in doubt, an RPC is never repeated.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from forbear.core.check import is_mapping
from forbear.core.service import Judgement
from forbear.grpc import codes, definitions
from forbear.grpc.call import GrpcCall, field
from forbear.grpc.definitions import Definition
from forbear.http import preconditions
from forbear.http.request import IDEMPOTENT, READS
from forbear.services.rpcs import allow_read, allow_write, forbid, google
from forbear.services.rpcs.google import Allowed, find_rules
from forbear.tables import google_apis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

_DRY = ("validate_only", "dry_run")
_NOTIFIES = ("send_updates", "send_notifications", "send_notification_email", "send_email")
_BINDINGS_OF_READS = frozenset({"GET", "POST"})
_READING = re.compile(r"(?:BatchGet|Search|List|Lookup|Count)(?:[A-Z]\w*)?")
_STATEFUL = frozenset({
    "statement", "statements", "sql", "session", "sessions", "transaction", "transactions", "lease", "leases", "ack",
    "acknowledge",
})  # fmt: skip
"""Words in the names of fields: a request that has one may run a statement, or begin, keep or take something."""

_DONE = (codes.NOT_FOUND, codes.NUMBERS["ALREADY_EXISTS"])


def judge(call: GrpcCall, service: "RpcService | None") -> Judgement:
    """Return the judgement on a call: that of the `service` which knows its package, else by the rules of this module.

    The rules also decide on RPCs that the table of the service lacks; without a definition its own judgement stays.

    >>> from forbear.services import find_rpc
    >>> call = GrpcCall("google.storage.v2.Storage/DeleteBucket", {"name": "projects/_/buckets/b"})
    >>> judgement = judge_rpc(call, find_rpc(call.method))
    >>> judgement.operation, judgement.repeatable
    ('google.storage.v2.Storage/DeleteBucket', True)
    """
    listed = None if service is None else service.classify_call(call)
    if listed is not None and (listed.operation is not None or listed.refused is not None):
        return listed
    name = call.name
    known, special = find_rules(name), _special_in(call.message)
    if known is not None and (known.is_row or not special):
        return known.judge(call.message)
    definition = definitions.find(name) if known is None else None
    if listed is not None and definition is None and known is None:
        return listed
    if not _is_google(name):
        return _judge_annotations(name, definition)
    return _judge_google(name, call.message, special, known, definition)


def is_known(name: str, service: "RpcService | None") -> bool:
    """Return whether there is more to say of an RPC than that it is not known: a row, a definition, or Google's rules.

    In the package of a `service` only rows and definitions count, so that an RPC that does not exist is noticed.
    """
    if find_rules(name) is not None or definitions.find(name) is not None:
        return True
    if service is None:
        return _is_google(name)
    return service.classify_call(GrpcCall(name)).operation is not None


def _is_google(name: str) -> bool:
    return name.startswith("google.")


@lru_cache(maxsize=1024)
def _judge_annotations(name: str, definition: Definition | None) -> Judgement:
    if definition is None:
        return forbid(name, "no module with its definition is loaded")
    source, bindings = definition.source, frozenset(definition.bindings)
    if definition.level == definitions.NO_SIDE_EFFECTS:
        return allow_read(name, f"idempotency_level = NO_SIDE_EFFECTS in {source}")
    if definition.level == definitions.IDEMPOTENT:
        return allow_write(name, f"idempotency_level = IDEMPOTENT in {source}", _DONE)
    why = f"google.api.http {' and '.join(definition.bindings)} in {source}"
    if bindings and bindings <= READS:
        return allow_read(name, why)
    if bindings and bindings <= READS | IDEMPOTENT:
        done = (codes.NOT_FOUND,) if "DELETE" in bindings else ()
        return allow_write(name, f"{why}; RFC 9110 9.2.2", done)
    return forbid(name, f"no annotation in {source} says that it may be")


def _judge_google(
    name: str, message: object, special: tuple[str, ...], listed: Allowed | None, definition: Definition | None
) -> Judgement:
    """Return the judgement on a call in one of Google's packages that has no row: the first rule that fits decides.

    `special` are the set fields that may change the judgement.
    """
    for each in special:
        value = _value(message, each)
        if each in _DRY and _is_true(value):
            return allow_read(name, f"{each} is true, so it changes nothing (AIP-163)")
        if each in _NOTIFIES and value not in (None, False, "none", "NONE"):
            return forbid(name, f"with {each} it would send its notifications twice")
    if listed is not None:
        return listed.judge(message)
    if definition is None:
        return forbid(name, "it is not in the list of Google's RPCs, and no client with its definition is loaded")
    if definition.bindings and READS.issuperset(definition.bindings):
        return allow_read(name, f"its HTTP binding is GET, in {definition.source} (AIP-127)")
    if is_read_by_post(name.partition("/")[2], definition):
        why = "a verb of reading, and its request holds no statement, session or transaction"
        return allow_read(name, f"{why}, in {definition.source}")
    return forbid(name, NO_RULE)


@lru_cache(maxsize=1024)
def is_read_by_post(verb: str, definition: Definition) -> bool:
    """Return whether a method is a read by POST: by its verb, and by the names of all fields in its request."""
    if definition.fields is None or not _BINDINGS_OF_READS.issuperset(definition.bindings):
        return False
    words = (word for field in definition.fields for word in field.split("_"))
    return _READING.fullmatch(verb) is not None and _STATEFUL.isdisjoint(words)


_SPECIAL = (*_DRY, *_NOTIFIES)  # in this order: what changes nothing sends nothing, either


def _special_in(message: Any) -> tuple[str, ...]:
    if is_mapping(message):
        return tuple([name for name in _SPECIAL if name in message])
    names = _special_of(message.__class__)
    return tuple([name for name in names if _value(message, name) is not None]) if names else names


@lru_cache(maxsize=1024)
def _special_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the special fields of a class of messages; all, if its fields cannot be read."""
    with suppress(Exception):  # attributes of an unknown class may raise anything
        fields = (kind.pb() if hasattr(kind, "pb") else kind).DESCRIPTOR.fields_by_name
        return tuple(name for name in _SPECIAL if name in fields)
    return _SPECIAL


def _value(message: object, name: str) -> object:
    """Return the value of a field of the request, None if it is not set or cannot be read."""
    with suppress(Exception):  # attributes of an unknown object may raise anything
        return field(message, name)
    return None


def _is_true(value: object) -> bool:
    return value is True or value == "true"  # as a text only in an explained call


def judge_json(host: str, method: str, target: str) -> Judgement | None:
    """Return the judgement on a request to a JSON API of Google by the rules for its RPC; None for one without RPCs.

    The RPC is found by its custom verb, else by AIP-131 to 135: the method, and the collection in the path. An API that
    has RPCs, but none that is listed for the path, is judged as an RPC that is not listed.
    """
    path, query = preconditions.split(target)
    api = google_apis.api(host)
    if api == "www":
        api = next((name for name in _OLD if path.startswith(f"/{name}/")), None)
    if api is None or api in google.OTHERS:
        return None
    for parts, name in _names(method, path):
        names = (_OPERATION,) if name == "DeleteOperation" else google.search((api, *parts), name)
        if method == "PUT" and name.startswith("Create"):
            names = tuple(each for each in names if _is_named_in_path(each))
        found = [_judge_path(_choose_version(each, path), method, path, query) for each in names]
        if found:  # of several services the least safe one counts
            return min(found, key=lambda judgement: judgement.repeatable)
    return forbid(f"{api}: {method}", NO_RULE) if google.has_api(api) else None


def _choose_version(name: str, path: str) -> str:
    """Return the name of an RPC in the version of its API that the path has, if services of that one are listed."""
    version = _VERSION_IN_PATH.match(path)
    there = name if version is None else google.VERSION.sub(f".{version[1]}", name)
    return there if google.has_service(there.partition("/")[0]) else name


def _is_named_in_path(name: str) -> bool:
    """Return whether a listed Create is one by PUT: the path has the whole name of the resource."""
    return any(rule.kind == "create" and rule.fields[-1].endswith("name") for rule in google.find(name))


NO_RULE = "no rule for Google's APIs says that it may be"
_OPERATION = "google.longrunning.Operations/DeleteOperation"
_OLD = ("bigquery", "compute")
"""The APIs with RPCs that also answer on www.googleapis.com."""
_VERBS = {
    "POST": ("Create", "Insert"),
    "GET": ("Get",),
    "PATCH": ("Update",),
    "PUT": ("Create", "Update"),
    "DELETE": ("Delete",),
}
_VERSION_IN_PATH = re.compile(r"/(?:[a-z]+/)?(v\d\w*)/")
_VERSIONED = re.compile(r"/(?:[a-z]+/)?(?:v\d\w*|beta|alpha)/")


def _names(method: str, path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names that the RPC of a request may have, each with the name of its service where that counts."""
    segments, _, custom = path.rpartition(":")
    if segments and custom.isalpha():
        yield (), custom[0].upper() + custom[1:]
        return
    *_, outer, last = ("", "", *path.split("/"))
    collection = last if method == "POST" else outer
    plural = collection[:1].upper() + collection[1:]
    for verb in _VERBS.get(method, ()):
        for many, one in _SINGULARS:
            if plural.endswith(many):
                yield (), verb + plural.removesuffix(many) + one
        yield (plural,), verb  # as Compute Engine names them
        if not plural.endswith("s"):
            yield (), verb + plural


_SINGULARS = (("ies", "y"), ("s", ""), ("es", ""), ("ora", "us"), ("ices", "ex"))
"""The ends of collections, and those of the resources in them; words such as "addresses" have two that fit."""


def _judge_path(name: str, method: str, path: str, query: str) -> Judgement:
    """Return the judgement on an RPC whose request is a path and a query; the body, with a POST's id, is not read."""
    allowed = find_rules(name)
    if allowed is None:
        return forbid(name, NO_RULE)
    resource = unquote(_VERSIONED.sub("", path, 1))
    pairs = [pair.partition("=") for pair in query.split("&")]
    given: dict[str, Any] = {_snake(unquote(key)): unquote(text) for key, _, text in pairs if text not in ("", "false")}
    given |= {name: value.split(",") for name, value in given.items() if name.endswith("mask")}
    for rule, judgement in allowed.rules:
        in_path = rule.fields if rule.kind == "delete" or (rule.kind == "create" and method == "PUT") else ()
        if rule.allows({each: resource for each in in_path if each not in google.GUARDS} | given):
            return judgement
    return allowed.others


def _snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()
