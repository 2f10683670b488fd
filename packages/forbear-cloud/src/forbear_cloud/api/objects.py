"""Objects: get, list, patch, update, delete and restore; see `uploads` and `downloads` for their bytes."""

from forbear_cloud.api.downloads import media
from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import (
    ApiError,
    HttpRequest,
    HttpResponse,
    JsonObject,
    invalid,
    json_response,
)
from forbear_cloud.storage.encryption import check_key, has_listed_hashes, is_readable, read_key
from forbear_cloud.storage.fields import query_flag, require_integer
from forbear_cloud.storage.listing import list_objects
from forbear_cloud.storage.model import StoredObject
from forbear_cloud.storage.resources import listing, moment, object_resource
from forbear_cloud.storage.retention import check_object_retention, expiration
from forbear_cloud.storage.writable import (
    check_custom_time,
    check_metadata,
    find_acl,
    merge_patch,
    object_fields,
)


def get(call: ApiCall) -> HttpResponse:
    """Read the metadata of an object, or its bytes with alt=media or under /download/.

    With softDeleted=true and a generation, read the metadata of a soft-deleted one. Respond 404 if it does not exist,
    412 or 304 if it does not meet the preconditions, and 400 if the headers have another key than the object.
    """
    alt = call.query.get("alt", "json")
    if alt not in {"json", "media"}:
        raise invalid(f"Invalid value for alt: '{alt[:80]}'. It must be json or media.")
    deleted, as_media = query_flag(call.query, "softDeleted"), wants_media(call.request)
    if deleted and as_media:
        raise invalid("The content of a soft-deleted object cannot be read: restore it first.")
    item = _find_deleted(call) if deleted else call.item()
    call.check_read(item)
    if as_media:
        return media(item, call.request)
    if read_key(call.request.headers) is not None:
        check_key(item, call.request.headers)
    return object_response(call, item)


def wants_media(request: HttpRequest) -> bool:
    """Return whether a request is for the bytes of an object: it has alt=media, or a path under /download/."""
    return request.query.get("alt") == "media" or request.path.startswith("/download/")


def list_(call: ApiCall) -> HttpResponse:
    """List a page of the objects of a bucket by name, grouped at a delimiter; with versions=true, all versions.

    With softDeleted=true, list the soft-deleted objects only.
    """
    query, bucket = call.query, call.bucket()
    call.store.list_deleted_objects(bucket)  # removes those that can no longer be restored
    page = list_objects(bucket, query, versions=query_flag(query, "versions"))
    resources = [resource_of(call, item, hashes=has_listed_hashes(item)) for item in page.items]
    return json_response(listing("objects", resources, page.token, prefixes=page.prefixes))


def patch(call: ApiCall) -> HttpResponse:
    """Change the fields of an object that are in the body, and keep its other fields; null removes one.

    An empty `retention` removes the retention. Respond with the object's resource, or 412 if it does not meet the
    preconditions.
    """
    item, body = call.item(), call.body()
    call.check_write(item)
    fields = object_fields(body)
    check_custom_time(item.fields, fields)
    changed = merge_patch(item.fields, {**fields, **({"retention": None} if fields.get("retention") == {} else {})})
    check_metadata(changed)
    return _changed(call, item, changed, body)


def update(call: ApiCall) -> HttpResponse:
    """Replace all writable fields of an object with those in the body, and respond with its resource.

    Respond 412 if it does not meet the preconditions.
    """
    item, body = call.item(), call.body()
    call.check_write(item)
    return _changed(call, item, merge_patch({}, object_fields(body)), body)


def delete(call: ApiCall) -> HttpResponse:
    """Delete the live version of an object (a versioned bucket keeps it as noncurrent), or one generation for good.

    The second is so if the query has a generation. Respond 204, or 412 if the version does not meet the preconditions.
    """
    item = call.item()
    call.check_write(item)
    call.store.delete_object(item, for_good="generation" in call.query)
    return call.commit_deletion(item.resource, item.generation)


def restore(call: ApiCall) -> HttpResponse:
    """Copy a soft-deleted version to a new live generation of the same name, and respond with its resource.

    The soft-deleted one stays, so a repeated request makes another copy.
    """
    old, bucket = _find_deleted(call), call.bucket()
    call.conditions().check_write(bucket.live(old.name))
    acl = old.acl if query_flag(call.query, "copySourceAcl") else None
    item = call.store.copy(old, bucket.name, old.name, old.fields, acl, old.keys)
    return commit_object(call, item)


def refuse_bulk_restore(_: ApiCall) -> HttpResponse:
    """Respond 501 to every request: the cloud cannot restore objects in bulk."""
    raise ApiError(501, "The embedded cloud does not serve bulkRestore: restore the objects one by one.")


def commit_object(call: ApiCall, item: StoredObject) -> HttpResponse:
    """Record in the journal that the call has written the object, and respond with its resource."""
    call.commit(item.resource, item.generation)
    return object_response(call, item)


def object_response(call: ApiCall, item: StoredObject) -> HttpResponse:
    """Respond 200 with the resource of an object as JSON, and with its entity tag as ETag."""
    return json_response(resource_of(call, item), headers=(("ETag", item.etag),))


def resource_of(call: ApiCall, item: StoredObject, *, hashes: bool = True) -> JsonObject:
    """Return the JSON resource of an object, with its hashes only if it has no key or the request has its key.

    With `hashes=False` it never has them. It says when the retention of the object ends, if it has one.
    """
    hashes = hashes and is_readable(item, call.request.headers)
    resource = object_resource(item, call.base, full=call.full, hashes=hashes)
    home = call.store.buckets.get(item.bucket)
    end = None if home is None else expiration(home, item)
    return resource if end is None else {**resource, "retentionExpirationTime": moment(end)}


def _find_deleted(call: ApiCall) -> StoredObject:
    """Return the soft-deleted object of the path, in the generation of the query.

    Raise 400 if the query has no generation, and 404 if there is no such object.
    """
    generation = require_integer(call.query, "generation")
    return call.store.find_deleted_object(call.bucket(), call.names["object"], generation)


def _changed(call: ApiCall, item: StoredObject, fields: JsonObject, body: JsonObject) -> HttpResponse:
    """Check and store the new fields of an object, and its access control list if the request sets one.

    Raise its metageneration, record the change in the journal, and respond with its resource.
    """
    acl = find_acl(body, "acl", call.query, "predefinedAcl", call.bucket().project)
    override = query_flag(call.query, "overrideUnlockedRetention")
    check_object_retention(call.bucket(), item.fields, fields, override=override)
    if acl is not None:
        item.acl = acl
    if item.fields.get("eventBasedHold") is True and fields.get("eventBasedHold") is not True:
        item.released = call.store.now()
    item.fields = fields
    call.store.touch(item)
    return commit_object(call, item)
