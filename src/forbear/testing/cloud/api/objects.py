"""objects: get, list, patch, update and delete; bytes going in and out are the business of uploads and downloads."""

from forbear.testing.cloud.api.downloads import media
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.conditions import check_etag, check_match
from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.fields import query_flag
from forbear.testing.cloud.model import StoredObject
from forbear.testing.cloud.objectlist import list_objects
from forbear.testing.cloud.predefined import predefined_acl
from forbear.testing.cloud.resources import listing, object_resource
from forbear.testing.cloud.wire import NO_CONTENT, JsonObject, Reply, Request, json_reply
from forbear.testing.cloud.writable import acl_field, check_custom_time, check_metadata, merged, object_fields


def get(call: Call) -> Reply:
    """Read an object: its metadata, or its bytes with alt=media or under /download/."""
    alt = call.query.get("alt", "json")
    if alt not in {"json", "media"}:
        raise invalid(f"Invalid value for alt: '{alt[:80]}'. It must be json or media.")
    item = call.item()
    call.conditions().check_read(item)
    check_etag(call.request.headers, item.etag)
    if wants_media(call.request):
        return media(item, call.request)
    return object_reply(call, item)


def wants_media(request: Request) -> bool:
    """Whether a read is for the bytes of an object, not for its metadata."""
    return request.query.get("alt") == "media" or request.path.startswith("/download/")


def list_(call: Call) -> Reply:
    """List objects by name, folded at a delimiter; all versions with versions=true."""
    query = call.query
    found = list_objects(call.bucket(), query, versions=query_flag(query, "versions"))
    resources = [object_resource(item, call.base, full=call.full) for item in found.items]
    return json_reply(listing("objects", resources, found.token, prefixes=found.prefixes))


def patch(call: Call) -> Reply:
    """Change the fields given, keep the others."""
    item, body = call.item(), call.body()
    call.conditions().check_write(item)
    check_match(call.request.headers, item.etag)
    fields = object_fields(body)
    check_custom_time(item.fields, fields)
    changed = merged(item.fields, fields)
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
    return json_reply(object_resource(item, call.base, full=call.full), headers=(("ETag", item.etag),))


def _changed(call: Call, item: StoredObject, fields: JsonObject, body: JsonObject) -> Reply:
    acl = acl_field(body, "acl") or predefined_acl(call.query, "predefinedAcl", call.bucket().project)
    if acl is not None:
        item.acl = acl
    item.fields = fields
    call.store.touch(item)
    call.committed(item.resource, item.generation)
    return object_reply(call, item)
