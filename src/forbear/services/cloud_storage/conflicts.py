"""Read-modify-write of buckets and objects: when another client was quicker, and whose write it is."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from forbear.core import check
from forbear.core.record import Record
from forbear.grpc import codes
from forbear.run.runtime import current
from forbear.services import errors
from forbear.services.cloud_storage.service import is_redirect
from forbear.tables import responses

_PREFIX = "forbear-write-"


def is_conflict(error: BaseException) -> bool:
    """Whether a write failed because its precondition (metageneration, generation, etag) no longer held.

    So says a 412, unless its body gives other reasons than `conditionNotMet`; and the gRPC codes FAILED_PRECONDITION
    and ABORTED, unless the latter only redirects a stream.
    """
    code = errors.code_of(error)
    if code is not None:
        return code == codes.FAILED_PRECONDITION or (
            code == codes.ABORTED and not is_redirect(code, errors.metadata_of(error))
        )
    if errors.status_of(error) != 412:
        return False
    reasons = responses.error_reasons(errors.body_of(error))
    return not reasons or "conditionNotMet" in reasons


class WriteToken(Record):
    """A mark to be written along with a change, by which it can be told from the changes of others.

    `field` is the map of the resource that holds it: "metadata" of an object (the default) or "labels" of a bucket.
    Make one for each change: `modify=lambda it: token.add_to(change(it))` and `mine=token.is_in`.

    Each mark has a key of its own, so that the next writer does not wipe it out before its own writer has looked; marks
    older than `keep` seconds (default 900, more than a run should last) become None when another is added, by which the
    API removes them.
    """

    __slots__ = ("field", "keep", "value")

    field: str
    keep: float
    value: str

    def __init__(self, field: str = "metadata", keep: float = 900, value: str | None = None) -> None:
        if not field or not isinstance(field, str):
            raise TypeError(f'`field` must be the name of a map, such as "metadata" or "labels", got {field!r}')
        check.seconds("keep", keep)
        self._set(field=field, keep=keep, value=value or uuid4().hex)

    @property
    def key(self) -> str:
        """The name of the mark, within the limits for labels."""
        return _PREFIX + self.value

    def add_to(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a resource (as the JSON API has it) with the mark, in which old ones are None."""
        now = int(current.get().now())
        entries: Mapping[str, Any] = resource.get(self.field) or {}
        kept = {key: None if self._is_old(key, value, now) else value for key, value in entries.items()}
        return {**resource, self.field: {**kept, self.key: str(now)}}

    def is_in(self, resource: Mapping[str, Any]) -> bool:
        """Whether a resource has been written with this mark."""
        marks: Mapping[str, object] = resource.get(self.field) or {}
        return marks.get(self.key) is not None

    def _is_old(self, key: str, value: object, now: int) -> bool:
        written = str(value)
        return key.startswith(_PREFIX) and written.isdecimal() and int(written) < now - self.keep
