"""Buckets: insert, get, list, patch, update, delete, restore, the retention lock, and notification configurations."""

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import (
    ApiError,
    HttpResponse,
    JsonObject,
    conflict,
    invalid,
    json_response,
    not_found,
    required,
)
from forbear_cloud.storage.fields import query_flag, query_integer, require_integer, text
from forbear_cloud.storage.model import Bucket, etag_of, get_object
from forbear_cloud.storage.resources import bucket_resource, listing, moment, storage_page
from forbear_cloud.storage.retention import check_policy, check_soft_delete
from forbear_cloud.storage.writable import (
    bucket_fields,
    check_bucket_name,
    find_acl,
    merge_patch,
)

_FIXED = ("hierarchicalNamespace", "objectRetention")
"""The fields that are set when a bucket is created, and that an update leaves as they are."""

_NOTIFICATION_FIELDS = ("topic", "event_types", "custom_attributes", "object_name_prefix", "payload_format")
_PAYLOAD_FORMATS = ("JSON_API_V1", "NONE")


def insert(call: ApiCall) -> HttpResponse:
    """Create the bucket that the body names, in the project of the query, and respond with its resource.

    Respond 409 if the name is taken, and 400 for a wrong name or field.
    """
    body = call.body()
    name, project = text(body, "name"), text(call.query, "project")
    check_bucket_name(name)
    acl, default_acl = _acls(call, project, body)
    fields = merge_patch({}, bucket_fields(body))
    check_policy({}, fields, call.store.now())
    check_soft_delete(fields)
    if query_flag(call.query, "enableObjectRetention"):
        fields["objectRetention"] = {"mode": "Enabled"}
    bucket = call.store.create_bucket(name, project, fields)
    bucket.acl, bucket.default_acl = acl or bucket.acl, default_acl or bucket.default_acl
    call.commit(name, bucket.generation)
    return _response(call, bucket)


def get(call: ApiCall) -> HttpResponse:
    """Read the metadata of a bucket; with softDeleted=true and a generation, of a soft-deleted bucket.

    Respond 404 if it does not exist, 412 or 304 if it does not meet the preconditions.
    """
    bucket = _find_deleted(call) if query_flag(call.query, "softDeleted") else call.bucket()
    call.check_read(bucket)
    return _response(call, bucket)


def list_(call: ApiCall) -> HttpResponse:
    """List a page of the buckets of a project by name, with a prefix; with softDeleted=true, the soft-deleted ones."""
    project, prefix = text(call.query, "project"), call.query.get("prefix", "")
    deleted = query_flag(call.query, "softDeleted")
    # A name may have been deleted more than once, so the generation tells the buckets apart.
    named = {
        (f"{bucket.name}#{bucket.generation}" if deleted else bucket.name): bucket
        for bucket in (call.store.restorable_buckets() if deleted else call.store.buckets.values())
        if bucket.project == project and bucket.name.startswith(prefix)
    }
    return storage_page("buckets", named, lambda bucket: _resource(call, bucket), call.query)


def patch(call: ApiCall) -> HttpResponse:
    """Change the fields of a bucket that are in the body, and keep its other fields; null removes one.

    Respond with its resource, or 412 if it does not meet the preconditions.
    """
    bucket, body = call.bucket(), call.body()
    call.check_write(bucket)
    return _changed(call, bucket, merge_patch(bucket.fields, bucket_fields(body)), body)


def update(call: ApiCall) -> HttpResponse:
    """Replace all writable fields of a bucket with those in the body, except the hierarchical namespace.

    That field and the mode of object retention stay as they are. Respond with its resource, or 412 if it does not meet
    the preconditions.
    """
    bucket, body = call.bucket(), call.body()
    call.check_write(bucket)
    kept = {name: bucket.fields[name] for name in _FIXED if name in bucket.fields}
    return _changed(call, bucket, {**merge_patch({}, bucket_fields(body)), **kept}, body)


def delete(call: ApiCall) -> HttpResponse:
    """Delete a bucket and respond 204; 409 if it contains an object, 412 if it does not meet the preconditions."""
    bucket = call.bucket()
    call.check_write(bucket)
    call.store.delete_bucket(bucket)
    return call.commit_deletion(bucket.name, bucket.generation)


def restore(call: ApiCall) -> HttpResponse:
    """Restore the soft-deleted bucket of the path, in the generation of the query, with its soft-deleted objects.

    Respond 404 if there is none, and 409 if a bucket has its name.
    """
    bucket = _find_deleted(call)
    if bucket.name in call.store.buckets:
        raise conflict(f"A bucket named {bucket.name} exists: delete it before you restore another one.")
    call.store.deleted_buckets.remove(bucket)
    bucket.soft_deleted = None
    call.store.buckets[bucket.name] = bucket
    call.store.touch(bucket)
    call.commit(bucket.name, bucket.generation)
    return json_response(_resource(call, bucket))


def lock_retention_policy(call: ApiCall) -> HttpResponse:
    """Lock the retention policy of a bucket for good; respond 400 if it has none.

    The query must have ifMetagenerationMatch, so that a repeated request fails with 412.
    """
    bucket = call.bucket()
    if query_integer(call.query, "ifMetagenerationMatch") is None:
        raise required("ifMetagenerationMatch")
    call.check_write(bucket)
    policy = get_object(bucket.fields, "retentionPolicy")
    if not policy:
        raise ApiError(400, f"Bucket {bucket.name} has no retention policy to lock.")
    locked: JsonObject = {"effectiveTime": moment(call.store.now()), **policy, "isLocked": True}
    return _changed(call, bucket, {**bucket.fields, "retentionPolicy": locked}, {})


def get_storage_layout(call: ApiCall) -> HttpResponse:
    """Read the location of a bucket, its type, and if the bucket has a hierarchical namespace.

    Clients need that before they move objects.
    """
    bucket = call.bucket()
    location = str(bucket.fields.get("location") or "US").upper()
    layout: JsonObject = {
        "kind": "storage#storageLayout",
        "bucket": bucket.name,
        "location": location,
        "locationType": "multi-region" if location in {"US", "EU", "ASIA"} else "region",
        "hierarchicalNamespace": {"enabled": bucket.hierarchical},
    }
    placement = get_object(bucket.fields, "customPlacementConfig")
    return json_response({**layout, "customPlacementConfig": placement} if placement else layout)


def _find_deleted(call: ApiCall) -> Bucket:
    """Return the soft-deleted bucket of the path, in the generation of the query.

    Raise 400 if the query has no generation, and 404 if there is no such bucket.
    """
    return call.store.find_deleted_bucket(call.names["bucket"], require_integer(call.query, "generation"))


def _acls(call: ApiCall, project: str, body: JsonObject) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """Return the access control lists for the bucket and for new objects, each None if the request does not set it.

    They come from the fields of the body, otherwise from the predefined ones that the query names. A bucket that is
    cleared of its list keeps the entry of its owner.
    """
    acl = find_acl(body, "acl", call.query, "predefinedAcl", project)
    if acl == {}:  # the owner stays
        acl = {f"project-owners-{project}": "OWNER"}
    return acl, find_acl(body, "defaultObjectAcl", call.query, "predefinedDefaultObjectAcl", project)


def _changed(call: ApiCall, bucket: Bucket, fields: JsonObject, body: JsonObject) -> HttpResponse:
    """Check and store the new fields of a bucket, and its access control lists if the request sets them.

    Raise its metageneration, record the change in the journal, and respond with its resource.
    """
    acl, default_acl = _acls(call, bucket.project, body)
    check_policy(bucket.fields, fields, call.store.now())
    check_soft_delete(fields)
    bucket.acl = bucket.acl if acl is None else acl
    bucket.default_acl = bucket.default_acl if default_acl is None else default_acl
    bucket.fields = fields
    call.store.touch(bucket)
    call.commit(bucket.name, bucket.generation)
    return _response(call, bucket)


def _response(call: ApiCall, bucket: Bucket) -> HttpResponse:
    return json_response(_resource(call, bucket), headers=(("ETag", bucket.etag),))


def _resource(call: ApiCall, bucket: Bucket) -> JsonObject:
    return bucket_resource(bucket, call.base, full=call.full)


def insert_notification(call: ApiCall) -> HttpResponse:
    """Add a notification configuration to a bucket under a new id, and respond with it; no events are sent.

    A repeated request adds another one, so that every event would be sent twice.
    """
    bucket, body = call.bucket(), call.body()
    text(body, "topic")
    if text(body, "payload_format") not in _PAYLOAD_FORMATS:
        raise invalid(f"Invalid value for payload_format: it must be one of {', '.join(_PAYLOAD_FORMATS)}.")
    number = str(call.store.next_id())
    config: JsonObject = {
        **{name: body[name] for name in _NOTIFICATION_FIELDS if body.get(name) is not None},
        "kind": "storage#notification",
        "id": number,
        "selfLink": f"{call.base}/storage/v1/b/{bucket.name}/notificationConfigs/{number}",
        "etag": etag_of(int(number)),
    }
    bucket.notifications[number] = config
    call.commit(f"{bucket.name}/notificationConfigs/{number}")
    return json_response(config)


def list_notifications(call: ApiCall) -> HttpResponse:
    """List all notification configurations of a bucket, in one page."""
    return json_response(listing("notifications", list(call.bucket().notifications.values())))


def get_notification(call: ApiCall) -> HttpResponse:
    """Read the notification configuration of the path; respond 404 if it does not exist."""
    return json_response(_notification(call))


def delete_notification(call: ApiCall) -> HttpResponse:
    """Delete the notification configuration of the path and respond 204; 404 if it does not exist."""
    _notification(call)
    bucket, number = call.bucket(), call.names["notification"]
    del bucket.notifications[number]
    return call.commit_deletion(f"{bucket.name}/notificationConfigs/{number}")


def _notification(call: ApiCall) -> JsonObject:
    """Return the notification configuration of the path; raise 404 if it does not exist."""
    config = call.bucket().notifications.get(call.names["notification"])
    if config is None:
        raise not_found("The notification")
    return config
