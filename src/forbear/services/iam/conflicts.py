"""Read-modify-write of allow policies: when another client was quicker, and whether a change is in.

A policy is a dict as the JSON API has it, the client library's own `Policy`, or a protobuf message.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forbear.core.untyped import is_mapping
from forbear.grpc import codes
from forbear.services import errors
from forbear.tables import responses

_CONDITION = ("title", "description", "expression")


def is_conflict(error: BaseException) -> bool:
    """Whether a write failed because another client had changed the resource: read it again and begin anew.

    So says a 409 with the status ABORTED, or the gRPC code ABORTED. A 409 of another status, such as ALREADY_EXISTS, is
    final, and so is one whose body is not at hand. A 412 counts too: it is only ever sent for a precondition of the
    request, and buckets answer so when the etag of their policy is not the current one. The gRPC code
    FAILED_PRECONDITION does not: IAM means by it a state of the system that reading again does not change.
    """
    if errors.code_of(error) == codes.ABORTED:
        return True
    status = errors.status_of(error)
    return status == 412 or (status == 409 and responses.error_status(errors.body_of(error)) == "ABORTED")


def has_member(role: str, member: str, condition: Mapping[str, str] | None = None) -> Callable[[object], bool]:
    """Whether a policy grants `role` to `member` under exactly this condition (None: without any); for `mine`.

    `condition` has the title, the expression and perhaps the description.
    """
    wanted = role, _plain(condition)

    def granted(policy: object) -> bool:
        return any(
            (_get(binding, "role"), _plain(_get(binding, "condition"))) == wanted and member in _members(binding)
            for binding in _get(policy, "bindings") or ()
        )

    return granted


def _members(binding: object) -> Iterable[str]:
    members: Iterable[str] = _get(binding, "members") or ()
    return members


def _plain(condition: Any) -> tuple[str, ...]:
    return tuple(str(_get(condition, name) or "") for name in _CONDITION)


def _get(thing: Any, name: str) -> Any:
    # The library's Policy is also a mapping, of roles to members, which says nothing of conditions.
    return thing.get(name) if is_mapping(thing) and not hasattr(thing, name) else getattr(thing, name, None)
