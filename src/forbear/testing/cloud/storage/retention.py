"""Holds and retention: what may not be deleted or overwritten yet, and which settings may not be weakened."""

from collections.abc import Mapping
from datetime import datetime

from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import Json, JsonObject
from forbear.testing.cloud.storage.fields import integer
from forbear.testing.cloud.storage.model import Bucket, StoredObject, nested
from forbear.testing.cloud.storage.resources import moment

_LONGEST = 100 * 365 * 24 * 60 * 60
_MODES = ("Unlocked", "Locked")


def check_no_hold(item: StoredObject) -> None:
    """Raise 403 while a version is on hold, which keeps it live too where noncurrent versions are kept."""
    for field, kind in (("temporaryHold", "Temporary"), ("eventBasedHold", "Event-Based")):
        if item.fields.get(field) is True:
            raise ApiError(
                403,
                f"Object '{item.resource}' is under active {kind} hold and cannot be deleted, overwritten or made "
                "noncurrent until the hold is removed.",
                "objectUnderActiveHold",
            )


def check_unprotected(bucket: Bucket, item: StoredObject, now: float) -> None:
    """Raise 403 while a hold or a retention period keeps a version from being deleted for good."""
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
    """Return when the retention of an object ends, in seconds; None for no retention, or none while it is on hold."""
    ends: list[float] = []
    period = nested(bucket.fields, "retentionPolicy").get("retentionPeriod")
    if period is not None and item.fields.get("eventBasedHold") is not True:
        ends.append((item.released or item.created) + integer(period, "retentionPeriod"))
    until = nested(item.fields, "retention").get("retainUntilTime")
    if isinstance(until, str):
        ends.append(_seconds(until))
    return max(ends, default=None)


def check_policy(old: Mapping[str, Json], new: JsonObject, now: float) -> None:
    """Complete the retention policy of a bucket; 400 for a wrong period, 403 to weaken a policy that is locked."""
    before, after = nested(old, "retentionPolicy"), nested(new, "retentionPolicy")
    if after:
        period = integer(after.get("retentionPeriod"), "retentionPolicy.retentionPeriod")
        if not 0 < period < _LONGEST:
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


def check_object_retention(bucket: Bucket, old: Mapping[str, Json], new: Mapping[str, Json], *, override: bool) -> None:
    """400 for a wrong retention of an object, 403 to weaken one: a locked one never, others with an override."""
    before, after = nested(old, "retention"), nested(new, "retention")
    if before == after:
        return
    if after:
        if nested(bucket.fields, "objectRetention").get("mode") != "Enabled":
            raise invalid("Object retention is not enabled for this bucket: create it with enableObjectRetention=true.")
        until = after.get("retainUntilTime")
        if after.get("mode") not in _MODES or not isinstance(until, str):
            raise invalid("Invalid value for retention: it has a mode, Unlocked or Locked, and a retainUntilTime.")
        _seconds(until)
    if not before:
        return
    weaker = not after or _seconds(str(after["retainUntilTime"])) < _seconds(str(before["retainUntilTime"]))
    locked = before.get("mode") == "Locked"
    if locked and (weaker or after.get("mode") != "Locked"):
        raise ApiError(403, "The retention of the object is locked: it can only be extended.", "forbidden")
    if weaker and not override:
        text = "The retention of the object can be reduced with overrideUnlockedRetention=true only."
        raise ApiError(403, text, "forbidden")


def _seconds(text: str) -> float:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise invalid(
            f"Invalid value for retainUntilTime: '{text[:80]}'. It must be a time such as 2026-01-31T12:00:00Z."
        )
    return time.timestamp()
