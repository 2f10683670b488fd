"""Read-modify-write of buckets and objects: when another client was quicker, and whose write it is."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from forbear.core.record import Record
from forbear.services import codes, replies, shapes
from forbear.services.cloud_storage.grpc_api import is_redirect

_KEY = "forbear-write"


def is_conflict(error: BaseException) -> bool:
    """Whether a write failed because its precondition (metageneration, generation, etag) no longer held.

    So says a 412, unless its body gives other reasons than `conditionNotMet`; and the gRPC codes FAILED_PRECONDITION
    and ABORTED, unless the latter only redirects a stream.
    """
    code = shapes.code(error)
    if code is not None:
        return code == codes.FAILED_PRECONDITION or (
            code == codes.ABORTED and not is_redirect(code, shapes.metadata(error))
        )
    if shapes.status(error) != 412:
        return False
    reasons = replies.error_reasons(shapes.body(error))
    return not reasons or "conditionNotMet" in reasons


class WriteToken(Record):
    """A mark to be written along with a change, by which it can be told from the changes of others.

    `field` is the map of the resource that holds it: "metadata" of an object (the default) or "labels" of a bucket.
    Make one for each change: `modify=lambda it: token.add_to(change(it))` and `mine=token.is_in`.
    """

    __slots__ = ("field", "value")

    field: str
    value: str

    def __init__(self, field: str = "metadata", value: str | None = None) -> None:
        if not field or not isinstance(field, str):
            raise TypeError(f'`field` must be the name of a map, such as "metadata" or "labels", got {field!r}')
        self._set(field=field, value=value or str(uuid4()))

    def add_to(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a resource (as the JSON API has it) with the mark; that of another write gives way."""
        return {**resource, self.field: {**(resource.get(self.field) or {}), _KEY: self.value}}

    def is_in(self, resource: Mapping[str, Any]) -> bool:
        """Whether a resource was last written with this mark."""
        marks: Mapping[str, object] = resource.get(self.field) or {}
        return marks.get(_KEY) == self.value
