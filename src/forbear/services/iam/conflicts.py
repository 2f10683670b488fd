"""Read-modify-write of allow policies: recognize a conflict, and recognize your own change.

A policy is a dict as in the JSON API, the client library's own `Policy`, or a protobuf message.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forbear.core.untyped import is_mapping
from forbear.grpc import codes
from forbear.services import errors
from forbear.tables import responses

_CONDITION = ("title", "description", "expression")


def is_conflict(error: BaseException) -> bool:
    """Return whether a write failed because another client had changed the resource: read it again and start over.

    A 409 with the status ABORTED means that, and so does the gRPC code ABORTED. A 409 with another status, such as
    ALREADY_EXISTS, is permanent, and so is one whose body is not at hand. A 412 counts, too: it is sent only for a
    precondition, and buckets send it when the etag of their policy is outdated. The gRPC code FAILED_PRECONDITION does
    not count: for IAM it is a state of the system that another read does not change.
    """
    if errors.code_of(error) == codes.ABORTED:
        return True
    status = errors.status_of(error)
    return status == 412 or (status == 409 and responses.error_status(errors.body_of(error)) == "ABORTED")


def has_member(role: str, member: str, condition: Mapping[str, str] | None = None) -> Callable[[object], bool]:
    """Return a test for `mine`: whether a policy grants `role` to `member`.

    The grant must have exactly this condition (None: no condition).

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
