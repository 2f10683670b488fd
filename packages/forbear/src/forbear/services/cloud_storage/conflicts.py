"""Help for read-modify-write of buckets and objects: recognize a conflict, and recognize your own earlier write."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from forbear.core import check
from forbear.core.record import Record
from forbear.grpc import codes
from forbear.run.runtime import current
from forbear.services import errors
from forbear.services.cloud_storage.service import is_redirect
from forbear.tables import google_apis

_PREFIX = "forbear-write-"


def is_conflict(error: BaseException) -> bool:
    """Return whether a write failed because its precondition (metageneration, generation, etag) no longer held.

    That is a 412, unless its body gives reasons without `conditionNotMet`, and the gRPC codes FAILED_PRECONDITION and
    ABORTED, unless ABORTED only redirects a stream.

    >>> from google.api_core.exceptions import NotFound, PreconditionFailed
    >>> is_conflict(PreconditionFailed("ifGenerationMatch")), is_conflict(NotFound("no such object"))
    (True, False)
    """
    code = errors.code_of(error)
    if code is not None:
        return code == codes.FAILED_PRECONDITION or (
            code == codes.ABORTED and not is_redirect(code, errors.metadata_of(error))
        )
    if errors.status_of(error) != 412:
        return False
    reasons = google_apis.error_reasons(errors.body_of(error))
    return not reasons or "conditionNotMet" in reasons


class WriteToken(Record):
    """A mark that is written along with a change, so that a writer can recognize its own write.

    `field` is the map of the resource that holds the mark: "metadata" of an object (the default) or "labels" of a
    bucket. Make one token for each change: `modify=lambda it: token.add_to(change(it))` and `mine=token.is_in`.

    The mark is an entry of that map: the key is made of `value` (default random), the entry's value is the time. Each
    mark has its own key, so that another writer does not remove it before its writer has looked for it. Adding a mark
    sets marks older than `keep` seconds (default 900, longer than a run should take) to None, which makes the API
    remove them.

    >>> token = WriteToken()
    >>> changed = token.add_to({"metadata": {"colour": "red"}})
    >>> token.is_in(changed), WriteToken().is_in(changed)
    (True, False)
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
        """The key of the mark: "forbear-write-" and `value`. If `value` was generated, it is valid as a label's key."""
        return _PREFIX + self.value

    def add_to(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a resource (as in the JSON API) with this mark; marks older than `keep` become None."""
        now = int(current.get().now())
        entries: Mapping[str, Any] = resource.get(self.field) or {}
        marks = {key: str(value) for key, value in entries.items() if key.startswith(_PREFIX)}
        ages = {key: now - int(value) for key, value in marks.items() if value.isdecimal()}
        kept = {key: None if ages.get(key, 0) > self.keep else value for key, value in entries.items()}
        return {**resource, self.field: {**kept, self.key: str(now)}}

    def is_in(self, resource: Mapping[str, Any]) -> bool:
        """Return whether a resource (as in the JSON API) has this mark in its map `field`, and not as None."""
        marks: Mapping[str, object] = resource.get(self.field) or {}
        return marks.get(self.key) is not None
