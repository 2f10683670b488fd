"""Soft delete: objects and buckets that can be restored for a while after they were deleted."""

from forbear.testing.cloud.http.errors import invalid, not_found
from forbear.testing.cloud.http.messages import JsonObject
from forbear.testing.cloud.storage.fields import integer
from forbear.testing.cloud.storage.model import Bucket, StoredObject, nested
from forbear.testing.cloud.storage.store import Store

_SHORTEST, _LONGEST = 7 * 86_400, 90 * 86_400


def check_soft_delete(fields: JsonObject) -> None:
    """Complete the soft delete policy of a bucket; 400 unless it is off (0) or keeps things for 7 to 90 days."""
    policy = nested(fields, "softDeletePolicy")
    if "retentionDurationSeconds" not in policy:
        return
    seconds = integer(policy["retentionDurationSeconds"], "softDeletePolicy.retentionDurationSeconds")
    if seconds and not _SHORTEST <= seconds <= _LONGEST:
        text = f"It must be 0 (off) or from {_SHORTEST} to {_LONGEST}."
        raise invalid(f"Invalid value for softDeletePolicy.retentionDurationSeconds: {seconds}. {text}")
    fields["softDeletePolicy"] = {**policy, "retentionDurationSeconds": str(seconds)}


def deleted_object(store: Store, bucket: Bucket, name: str, generation: int) -> StoredObject:
    """Return a version that can be restored; 404 when there is none."""
    forget_expired(store, bucket)
    for item in bucket.deleted_objects:
        if (item.name, item.generation) == (name, generation):
            return item
    raise not_found(f"No such soft-deleted object: {bucket.name}/{name}#{generation}; it")


def forget_expired(store: Store, bucket: Bucket) -> None:
    """Drop what can be restored no longer."""
    now = store.now()
    bucket.deleted_objects[:] = [
        item for item in bucket.deleted_objects if item.soft_deleted is not None and item.soft_deleted[1] > now
    ]


def deleted_buckets(store: Store) -> list[Bucket]:
    """Return the buckets that can be restored."""
    now = store.now()
    store.deleted_buckets[:] = [
        bucket for bucket in store.deleted_buckets if bucket.soft_deleted is not None and bucket.soft_deleted[1] > now
    ]
    return store.deleted_buckets


def deleted_bucket(store: Store, name: str, generation: int) -> Bucket:
    """Return a bucket that can be restored; 404 when there is none."""
    for bucket in deleted_buckets(store):
        if (bucket.name, bucket.generation) == (name, generation):
            return bucket
    raise not_found(f"The soft-deleted bucket {name}#{generation}")
