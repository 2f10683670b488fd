"""buckets: insert, get, list, patch, update, delete and the lock of a retention policy; objects are elsewhere."""

import re

from forbear.testing.cloud.api.acls import predefined_acl
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError, invalid, not_found, required
from forbear.testing.cloud.http.messages import NO_CONTENT, JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.conditions import check_etag, check_match
from forbear.testing.cloud.storage.fields import page, query_flag, query_integer, text
from forbear.testing.cloud.storage.model import Bucket, etag_of, nested
from forbear.testing.cloud.storage.resources import bucket_resource, listing, moment
from forbear.testing.cloud.storage.retention import check_policy
from forbear.testing.cloud.storage.softdelete import check_soft_delete, deleted_bucket, deleted_buckets
from forbear.testing.cloud.storage.writable import acl_field, bucket_fields, merged

_FIXED = ("hierarchicalNamespace", "objectRetention")
"""The fields of a new bucket."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")


def insert(call: Call) -> Reply:
    """Create a bucket; 409 when the name is taken."""
    body = call.body()
    name, project = text(body, "name"), _project(call)
    check_bucket_name(name)
    acl, default_acl = _acls(call, project, body)
    fields = merged({}, bucket_fields(body))
    check_policy({}, fields, call.store.now())
    check_soft_delete(fields)
    if query_flag(call.query, "enableObjectRetention"):
        fields["objectRetention"] = {"mode": "Enabled"}
    bucket = call.store.create_bucket(name, project, fields)
    bucket.acl, bucket.default_acl = acl or bucket.acl, default_acl or bucket.default_acl
    call.committed(name, bucket.generation)
    return _reply(call, bucket)


def get(call: Call) -> Reply:
    """Read the metadata of a bucket."""
    if query_flag(call.query, "softDeleted"):
        generation = query_integer(call.query, "generation")
        if generation is None:
            raise required("generation")
        bucket = deleted_bucket(call.store, call.names["bucket"], generation)
    else:
        bucket = call.bucket()
    call.conditions().check_read(bucket)
    check_etag(call.request.headers, bucket.etag)
    return _reply(call, bucket)


def list_(call: Call) -> Reply:
    """List the buckets of a project, by name."""
    project, prefix = _project(call), call.query.get("prefix", "")
    deleted = query_flag(call.query, "softDeleted")
    some = deleted_buckets(call.store) if deleted else call.store.buckets.values()
    # A name may have been deleted more than once: the generation tells which.
    named = {(f"{each.name}#{each.generation}" if deleted else each.name): each for each in some}
    names = sorted(key for key, each in named.items() if each.project == project and each.name.startswith(prefix))
    shown, token = page(names, call.query)
    found = [bucket_resource(named[key], call.base, full=call.full) for key in shown]
    return json_reply(listing("buckets", found, token))


def patch(call: Call) -> Reply:
    """Change the fields given, keep the others."""
    bucket, body = call.bucket(), call.body()
    call.conditions().check_write(bucket)
    check_match(call.request.headers, bucket.etag)
    return _changed(call, bucket, merged(bucket.fields, bucket_fields(body)), body)


def update(call: Call) -> Reply:
    """Replace all fields."""
    bucket, body = call.bucket(), call.body()
    call.conditions().check_write(bucket)
    check_match(call.request.headers, bucket.etag)
    kept = {name: bucket.fields[name] for name in _FIXED if name in bucket.fields}
    return _changed(call, bucket, {**merged({}, bucket_fields(body)), **kept}, body)


def delete(call: Call) -> Reply:
    """Delete an empty bucket."""
    bucket = call.bucket()
    call.conditions().check_write(bucket)
    check_match(call.request.headers, bucket.etag)
    call.store.delete_bucket(bucket)
    call.committed(bucket.name, bucket.generation)
    return NO_CONTENT


def lock_retention_policy(call: Call) -> Reply:
    """Lock the retention policy for good; the metageneration must be named, so it succeeds once."""
    bucket = call.bucket()
    if query_integer(call.query, "ifMetagenerationMatch") is None:
        raise required("ifMetagenerationMatch")
    call.conditions().check_write(bucket)
    check_match(call.request.headers, bucket.etag)
    policy = nested(bucket.fields, "retentionPolicy")
    if not policy:
        raise ApiError(400, f"Bucket {bucket.name} has no retention policy to lock.")
    locked: JsonObject = {"effectiveTime": moment(call.store.now()), **policy, "isLocked": True}
    return _changed(call, bucket, {**bucket.fields, "retentionPolicy": locked}, {})


def check_bucket_name(name: str) -> None:
    """400 unless the name is 3 to 222 lower-case letters, digits, dots, dashes and underscores."""
    if not _NAME.fullmatch(name):
        raise invalid(f"Invalid bucket name: '{name[:80]}'.")


def get_storage_layout(call: Call) -> Reply:
    """Say where a bucket lies, and whether it has folders; clients ask before they move objects."""
    bucket = call.bucket()
    location = str(bucket.fields.get("location") or "US").upper()
    layout: JsonObject = {
        "kind": "storage#storageLayout",
        "bucket": bucket.name,
        "location": location,
        "locationType": "multi-region" if location in {"US", "EU", "ASIA"} else "region",
        "hierarchicalNamespace": {"enabled": bucket.hierarchical},
    }
    placement = nested(bucket.fields, "customPlacementConfig")
    return json_reply({**layout, "customPlacementConfig": placement} if placement else layout)


def _project(call: Call) -> str:
    project = call.query.get("project")
    if not project:
        raise required("project")
    return project


def _acls(call: Call, project: str, body: JsonObject) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """The bucket's list and the one for objects to come, as far as the request gives them."""
    acl = acl_field(body, "acl") or predefined_acl(call.query, "predefinedAcl", project)
    default_acl = acl_field(body, "defaultObjectAcl")
    return acl, default_acl or predefined_acl(call.query, "predefinedDefaultObjectAcl", project)


def _changed(call: Call, bucket: Bucket, fields: JsonObject, body: JsonObject) -> Reply:
    acl, default_acl = _acls(call, bucket.project, body)
    check_policy(bucket.fields, fields, call.store.now())
    check_soft_delete(fields)
    bucket.acl, bucket.default_acl = acl or bucket.acl, default_acl or bucket.default_acl
    bucket.fields = fields
    call.store.touch(bucket)
    call.committed(bucket.name, bucket.generation)
    return _reply(call, bucket)


def _reply(call: Call, bucket: Bucket) -> Reply:
    return json_reply(bucket_resource(bucket, call.base, full=call.full), headers=(("ETag", bucket.etag),))


_FIELDS = ("topic", "event_types", "custom_attributes", "object_name_prefix", "payload_format")
_FORMATS = ("JSON_API_V1", "NONE")


def insert_notification(call: Call) -> Reply:
    """Add a configuration under a new id, every time: a repeat makes every event come twice."""
    bucket, body = call.bucket(), call.body()
    text(body, "topic")
    if text(body, "payload_format") not in _FORMATS:
        raise invalid(f"Invalid value for payload_format: it must be one of {', '.join(_FORMATS)}.")
    number = str(call.store.next_id())
    config: JsonObject = {
        **{name: body[name] for name in _FIELDS if body.get(name) is not None},
        "kind": "storage#notification",
        "id": number,
        "selfLink": f"{call.base}/storage/v1/b/{bucket.name}/notificationConfigs/{number}",
        "etag": etag_of(int(number)),
    }
    bucket.notifications[number] = config
    call.committed(f"{bucket.name}/notificationConfigs/{number}")
    return json_reply(config)


def list_notifications(call: Call) -> Reply:
    """List the configurations of a bucket, in one page."""
    return json_reply(listing("notifications", list(call.bucket().notifications.values())))


def get_notification(call: Call) -> Reply:
    """Read one configuration."""
    return json_reply(_notification(call))


def delete_notification(call: Call) -> Reply:
    """Delete one configuration."""
    _notification(call)
    bucket, number = call.bucket(), call.names["notification"]
    del bucket.notifications[number]
    call.committed(f"{bucket.name}/notificationConfigs/{number}")
    return NO_CONTENT


def _notification(call: Call) -> JsonObject:
    config = call.bucket().notifications.get(call.names["notification"])
    if config is None:
        raise not_found("The notification")
    return config
