"""Retention: which versions cannot be deleted yet, and which protective settings cannot be weakened."""

from collections.abc import Mapping

from forbear_cloud.http.messages import ApiError, Json, JsonObject, invalid
from forbear_cloud.storage.fields import instant, integer
from forbear_cloud.storage.model import Bucket, StoredObject, get_object
from forbear_cloud.storage.resources import moment

_DAY = 86_400
_MAX_PERIOD = 100 * 365 * _DAY
_MIN_SOFT_DELETE, _MAX_SOFT_DELETE = 7 * _DAY, 90 * _DAY
_MODES = ("Unlocked", "Locked")


def check_no_hold(item: StoredObject) -> None:
    """Raise 403 if a version has a temporary or an event-based hold; such a version cannot even become noncurrent."""
    for field, kind in (("temporaryHold", "Temporary"), ("eventBasedHold", "Event-Based")):
        if item.fields.get(field) is True:
            raise ApiError(
                403,
                f"Object '{item.resource}' is under active {kind} hold and cannot be deleted, overwritten or made "
                "noncurrent until the hold is removed.",
                "objectUnderActiveHold",
            )


def check_unprotected(bucket: Bucket, item: StoredObject, now: float) -> None:
    """Raise 403 if a hold or a retention that has not ended at `now` prevents the permanent deletion of a version."""
    check_no_hold(item)
    end = expiration(bucket, item)
    if end is not None and now < end:
        raise ApiError(
            403,
            f"Object '{item.resource}' is subject to a retention policy and cannot be deleted or overwritten until "
            f"{moment(end)}.",
            "retentionPolicyNotMet",
        )


def expiration(bucket: Bucket, item: StoredObject) -> float | None:
    """Return when the retention of an object ends, in seconds since the epoch; None without a retention.

    It is the later of two times: the end of the bucket's period, and the object's own retainUntilTime. The period
    counts from the creation, or from the release of an event-based hold; while such a hold is on, it is left out.
    """
    ends: list[float] = []
    period = get_object(bucket.fields, "retentionPolicy").get("retentionPeriod")
    if period is not None and item.fields.get("eventBasedHold") is not True:
        ends.append((item.released or item.created) + integer(period, "retentionPeriod"))
    until = get_object(item.fields, "retention").get("retainUntilTime")
    if isinstance(until, str):
        ends.append(_seconds(until))
    return max(ends, default=None)


def check_policy(old: Mapping[str, Json], new: JsonObject, now: float) -> None:
    """Check the retention policy in the `new` fields of a bucket, and add there what the service sets.

    Raise 400 unless the period is from 1 second to less than 100 years, and 403 if a locked policy is removed or its
    period reduced. A policy without an effectiveTime gets that of the `old` one, or `now`; a lock stays.
    """
    before, after = get_object(old, "retentionPolicy"), get_object(new, "retentionPolicy")
    if after:
        period = integer(after.get("retentionPeriod"), "retentionPolicy.retentionPeriod")
        if not 0 < period < _MAX_PERIOD:
            raise invalid(f"Invalid value for retentionPolicy.retentionPeriod: {period}. It must be 1 s to 100 years.")
        since = before.get("effectiveTime") if before else None
        new["retentionPolicy"] = {
            "effectiveTime": since or moment(now), **after, "retentionPeriod": str(period),
            **({"isLocked": True} if before.get("isLocked") is True else {}),
        }  # fmt: skip
    if before.get("isLocked") is True and (
        not after or integer(after["retentionPeriod"], "retentionPeriod") < integer(before["retentionPeriod"], "")
    ):
        raise ApiError(403, "Cannot remove or reduce a retention policy that is locked.", "forbidden")


def check_soft_delete(fields: JsonObject) -> None:
    """Raise 400 unless the duration in a bucket's soft delete policy is 0 (off) or from 7 to 90 days, in seconds.

    No duration is fine too. A valid one is stored back into `fields` as a string, as the service writes it.
    """
    policy = get_object(fields, "softDeletePolicy")
    if "retentionDurationSeconds" not in policy:
        return
    seconds = integer(policy["retentionDurationSeconds"], "softDeletePolicy.retentionDurationSeconds")
    if seconds and not _MIN_SOFT_DELETE <= seconds <= _MAX_SOFT_DELETE:
        raise invalid(
            f"Invalid value for softDeletePolicy.retentionDurationSeconds: {seconds}. It must be 0 (off) or from "
            f"{_MIN_SOFT_DELETE} to {_MAX_SOFT_DELETE}."
        )
    fields["softDeletePolicy"] = {**policy, "retentionDurationSeconds": str(seconds)}


def check_object_retention(
    bucket: Bucket, old: Mapping[str, Json], new: Mapping[str, Json], *, override: bool = False
) -> None:
    """Check the change of an object's own retention from the `old` to the `new` fields; return if they are equal.

    Raise 400 if the new one is invalid or the bucket does not allow it, and 403 if it weakens the old one. A locked
    retention can only be extended. An unlocked one can be weakened with `override`.
    """
    before, after = get_object(old, "retention"), get_object(new, "retention")
    if before == after:
        return
    if after:
        if get_object(bucket.fields, "objectRetention").get("mode") != "Enabled":
            raise invalid("Object retention is not enabled for this bucket: create it with enableObjectRetention=true.")
        until = after.get("retainUntilTime")
        if after.get("mode") not in _MODES or not isinstance(until, str):
            raise invalid("Invalid value for retention: it needs a mode (Unlocked or Locked) and a retainUntilTime.")
        _seconds(until)
    if not before:
        return
    weaker = not after or _seconds(str(after["retainUntilTime"])) < _seconds(str(before["retainUntilTime"]))
    locked = before.get("mode") == "Locked"
    if locked and (weaker or after.get("mode") != "Locked"):
        raise ApiError(403, "The retention of the object is locked: it can only be extended.", "forbidden")
    if weaker and not override:
        raise ApiError(
            403, "The retention of the object can be reduced with overrideUnlockedRetention=true only.", "forbidden"
        )


def _seconds(text: str) -> float:
    return instant(text, "retainUntilTime").timestamp()
