"""objects: get, list, patch, update and delete; bytes going in and out are the business of uploads and downloads."""

from forbear.testing.cloud.api.acls import predefined_acl
from forbear.testing.cloud.api.downloads import media
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError, conflict, invalid, required
from forbear.testing.cloud.http.messages import NO_CONTENT, JsonObject, Reply, Request, json_reply
from forbear.testing.cloud.storage.conditions import check_etag, check_match
from forbear.testing.cloud.storage.encryption import is_readable
from forbear.testing.cloud.storage.fields import query_flag, query_integer
from forbear.testing.cloud.storage.listing import list_objects
from forbear.testing.cloud.storage.model import StoredObject
from forbear.testing.cloud.storage.resources import bucket_resource, listing, moment, object_resource
from forbear.testing.cloud.storage.retention import check_object_retention, expiration
from forbear.testing.cloud.storage.softdelete import deleted_bucket, deleted_object, forget_expired
from forbear.testing.cloud.storage.writable import acl_field, check_custom_time, check_metadata, merged, object_fields


def get(call: Call) -> Reply:
    """Read an object: its metadata, or its bytes with alt=media or under /download/."""
    alt = call.query.get("alt", "json")
    if alt not in {"json", "media"}:
        raise invalid(f"Invalid value for alt: '{alt[:80]}'. It must be json or media.")
    item = _deleted(call) if query_flag(call.query, "softDeleted") else call.item()
    call.conditions().check_read(item)
    check_etag(call.request.headers, item.etag)
    if wants_media(call.request):
        return media(item, call.request)
    return object_reply(call, item)


def _deleted(call: Call) -> StoredObject:
    generation = query_integer(call.query, "generation")
    if generation is None:
        raise required("generation")
    if wants_media(call.request):
        raise invalid("The content of a soft-deleted object cannot be read: restore it first.")
    return deleted_object(call.store, call.bucket(), call.names["object"], generation)


def wants_media(request: Request) -> bool:
    """Whether a read is for the bytes of an object, not for its metadata."""
    return request.query.get("alt") == "media" or request.path.startswith("/download/")


def list_(call: Call) -> Reply:
    """List objects by name, folded at a delimiter; all versions with versions=true."""
    query, bucket = call.query, call.bucket()
    forget_expired(call.store, bucket)
    found = list_objects(bucket, query, versions=query_flag(query, "versions"))
    resources = [resource_of(call, item) for item in found.items]
    return json_reply(listing("objects", resources, found.token, prefixes=found.prefixes))


def patch(call: Call) -> Reply:
    """Change the fields given, keep the others."""
    item, body = call.item(), call.body()
    call.conditions().check_write(item)
    check_match(call.request.headers, item.etag)
    fields = object_fields(body)
    check_custom_time(item.fields, fields)
    changed = merged(item.fields, {**fields, **({"retention": None} if fields.get("retention") == {} else {})})
    check_metadata(changed)
    return _changed(call, item, changed, body)


def update(call: Call) -> Reply:
    """Replace all fields."""
    item, body = call.item(), call.body()
    call.conditions().check_write(item)
    check_match(call.request.headers, item.etag)
    return _changed(call, item, merged({}, object_fields(body)), body)


def delete(call: Call) -> Reply:
    """Delete the live version (in a versioned bucket it becomes noncurrent), or one generation for good."""
    item = call.item()
    call.conditions().check_write(item)
    check_match(call.request.headers, item.etag)
    call.store.delete_object(item, for_good="generation" in call.query)
    call.committed(item.resource, item.generation)
    return NO_CONTENT


def object_reply(call: Call, item: StoredObject) -> Reply:
    """The resource of an object, as most operations answer."""
    return json_reply(resource_of(call, item), headers=(("ETag", item.etag),))


def resource_of(call: Call, item: StoredObject) -> JsonObject:
    """Return the resource of an object as this request may see it."""
    hashes = is_readable(item, call.request.headers)
    resource = object_resource(item, call.base, full=call.full, hashes=hashes)
    home = call.store.buckets.get(item.bucket)
    end = None if home is None else expiration(home, item)
    return resource if end is None else {**resource, "retentionExpirationTime": moment(end)}


def _changed(call: Call, item: StoredObject, fields: JsonObject, body: JsonObject) -> Reply:
    acl = acl_field(body, "acl") or predefined_acl(call.query, "predefinedAcl", call.bucket().project)
    override = query_flag(call.query, "overrideUnlockedRetention")
    check_object_retention(call.bucket(), item.fields, fields, override=override)
    if acl is not None:
        item.acl = acl
    if item.fields.get("eventBasedHold") is True and fields.get("eventBasedHold") is not True:
        item.released = call.store.now()
    item.fields = fields
    call.store.touch(item)
    call.committed(item.resource, item.generation)
    return object_reply(call, item)


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
