"""objects.restore and buckets.restore: what was deleted under a soft delete policy comes back."""

from forbear.testing.cloud.api.objects import object_reply
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.errors import ApiError, conflict, required
from forbear.testing.cloud.fields import query_flag, query_integer
from forbear.testing.cloud.resources import bucket_resource
from forbear.testing.cloud.softdelete import deleted_bucket, deleted_object
from forbear.testing.cloud.wire import Reply, json_reply


def restore_object(call: Call) -> Reply:
    """Make a live copy of a deleted version, as a new generation: every repeat makes another one."""
    bucket, name = call.bucket(), call.names["object"]
    old = deleted_object(call.store, bucket, name, _generation(call))
    call.conditions().check_write(bucket.live(name))
    call.store.claim([old.content])
    acl = old.acl if query_flag(call.query, "copySourceAcl") else None
    item = call.store.put(
        bucket.name, name, old.content, old.fields, acl=acl, components=old.components, key_sha256=old.key_sha256
    )
    call.committed(item.resource, item.generation)
    return object_reply(call, item)


def restore_objects(_: Call) -> Reply:
    """Refuse to restore in bulk."""
    raise ApiError(501, "The embedded cloud does not serve bulkRestore: restore the objects one by one.")


def restore_bucket(call: Call) -> Reply:
    """Bring back a deleted bucket with the objects that can be restored in it; 409 when its name is taken."""
    name = call.names["bucket"]
    bucket = deleted_bucket(call.store, name, _generation(call))
    if name in call.store.buckets:
        raise conflict(f"The bucket {name} exists: delete it before another one of its name is restored.")
    call.store.deleted_buckets.remove(bucket)
    bucket.soft_deleted = None
    call.store.buckets[name] = bucket
    call.store.touch(bucket)
    call.committed(name, bucket.generation)
    return json_reply(bucket_resource(bucket, call.base, full=call.full))


def _generation(call: Call) -> int:
    generation = query_integer(call.query, "generation")
    if generation is None:
        raise required("generation")
    return generation
