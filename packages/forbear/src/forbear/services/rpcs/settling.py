"""Find out by reading back if a Create or a Delete of Google's APIs was executed: `plan_read` and `settle`.

Both are pure. The read is the standard Get of the same service, as the definitions of the RPCs show: its request has
the `name`, and it returns what the Create returns. So a Create that returns an Operation has none.

- A Create is done if the resource has all fields as they were sent. What any other parameter did is not known.
- A Delete is done if the Get answers NOT_FOUND. A resource that is only marked as deleted proves neither.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from forbear.grpc import definitions
from forbear.grpc.call import GrpcCall, field, to_raw
from forbear.grpc.status import parts
from forbear.services.cloud_storage.settling import Finding, Reading, Settlement, settle_absence, settle_found
from forbear.services.rpcs.google import RpcRule, find_rules

MineRpc: TypeAlias = Callable[[Any, Any], bool]
"""The user's function: whether the message that was read was written by the request that sent the other one."""

_NOUN = re.compile(r"(?:Create|Delete)(\w+)")
_PATH = re.compile(r"/[^{]*\{parent\b[^}]*\}(/\w+)")
"""The path of a Create: the name of the parent, and the collection in it."""

_BEHAVIOR, _NOT_SENT = 1052, frozenset({3, 8})
"""The number of the option google.api.field_behavior, and its values OUTPUT_ONLY and IDENTIFIER."""

_SERVERS = ("name", "etag")
"""The fields of a resource that the server sets, whatever a Create has in their place."""


class ReadPlan(NamedTuple):
    """The read that settles a call: its RPC and request. `sent` is the resource in a Create, None for a Delete.

    `response` is the class of the call's response.
    """

    rpc: str
    request: Any
    sent: Any
    response: Any


def plan_read(call: GrpcCall, mine: MineRpc | None = None) -> ReadPlan | None:
    """Return the read that settles a call, None if none can.

    `mine` is the user's function, None if the state counts, whoever made it.
    """
    service, _, method = call.name.partition("/")
    noun, rule, message = _NOUN.fullmatch(method), _find_rule(call), call.message
    if noun is None or rule is None:
        return None
    get = f"{service}/Get{noun[1]}"
    write, read, rules = definitions.find_types(call.name), definitions.find_types(get), find_rules(get)
    if write is None or read is None or rules is None or not isinstance(message, write.request):
        return None
    if not any(each.is_read for each, _ in rules.rules) or "name" not in _describe(read.request).fields_by_name:
        return None
    if rule.kind == "delete":
        is_plain = mine is None and rule.fields[0] == "name" and _describe(write.response).full_name == _EMPTY
        return ReadPlan(get, read.request(name=field(message, "name")), None, write.response) if is_plain else None
    name = _find_name(rule, message, write.paths)
    kind = _describe(read.response)
    own = [each.name for each in _describe(write.request).fields if each.message_type is kind]
    if name is None or len(own) != 1 or write.response is not read.response:
        return None
    known = {"parent", "request_id", own[0], (rule.condition or "").partition(".")[0]}
    if mine is None and not {each.name for each, _ in to_raw(message).ListFields()} <= known:
        return None
    sent = getattr(message, own[0])
    is_shown = mine is not None or any(_list_sent(to_raw(sent), _SERVERS))
    return ReadPlan(get, read.request(name=name), sent, write.response) if is_shown else None


_EMPTY, _STATES = "google.protobuf.Empty", ("state", "lifecycle_state")


def settle(call: GrpcCall, read: Sequence[Reading], mine: MineRpc | None = None) -> Settlement:
    """Return whether `call` was executed, by the response to the read of `plan_read`: an HTTP status, and a message.

    With `mine` that function decides, otherwise the state. TypeError if `mine` returns no bool.
    """
    plan = plan_read(call, mine)
    if plan is None or len(read) != 1:
        return Settlement(Finding.UNKNOWN, "no read can prove it")
    if plan.sent is None:
        return settle_absence(read)
    found: Any = read[0].resource
    if not isinstance(found, plan.response):
        return Settlement(Finding.UNKNOWN, f"the read answered {read[0].status}")
    if mine is None and (field(found, "delete_time") or any("DELET" in str(field(found, each)) for each in _STATES)):
        return Settlement(Finding.UNKNOWN, "the resource is marked as deleted")
    return settle_found(plan.sent, found, mine, lambda: _find_reason(to_raw(plan.sent), to_raw(found)))


def _describe(kind: Any) -> Any:
    return (kind.pb() if hasattr(kind, "pb") else kind).DESCRIPTOR


def _find_rule(call: GrpcCall) -> RpcRule | None:
    """Return the rule for a Create or a Delete that allows a call, None without one."""
    allowed = find_rules(call.name)
    rules = () if allowed is None else allowed.rules
    return next((rule for rule, _ in rules if rule.kind in ("create", "delete") and rule.allows(call.message)), None)


def _find_name(rule: RpcRule, message: Any, paths: Sequence[str]) -> str | None:
    """Return the name of the resource that a Create makes, None if it is not known."""
    chosen, parent = field(message, rule.condition or ""), field(message, "parent")
    if (rule.condition or "").endswith("name"):
        return str(chosen)
    ends = {None if match is None else match[1] for match in map(_PATH.fullmatch, paths)}
    end = ends.pop() if len(ends) == 1 else None
    return f"{parent}{end}/{chosen}" if parent and end else None


def _find_reason(sent: Any, read: Any, left_out: Sequence[str] = _SERVERS) -> str:
    """Return why a message was read otherwise than it was sent, "" if all fields that were sent are equal."""
    for each in _list_sent(sent, left_out):
        one, other = getattr(sent, each.name), getattr(read, each.name)
        if hasattr(one, "ListFields") and not each.message_type.full_name.startswith("google.protobuf."):
            is_same = read.HasField(each.name) and not _find_reason(one, other, ())
        else:
            is_same = one == other
        if not is_same:
            return f"{each.name} is not as it was sent"
    return ""


def _list_sent(message: Any, left_out: Sequence[str]) -> list[Any]:
    """Return the descriptors of the fields that a request sets, without those that the server sets."""
    return [each for each, _ in message.ListFields() if each.name not in left_out and not _is_server_set(each)]


def _is_server_set(each: Any) -> bool:
    """Return whether an annotation says that a field is not the caller's; several behaviors are packed into bytes."""
    options = parts(each.GetOptions().SerializeToString())
    behaviors = [value for number, value in options if number == _BEHAVIOR]
    return any(not _NOT_SENT.isdisjoint(each if isinstance(each, bytes) else (each,)) for each in behaviors)
