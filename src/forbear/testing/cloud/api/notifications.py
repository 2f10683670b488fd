"""notificationConfigs: insert, list, get and delete; nothing is ever published."""

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.errors import invalid, not_found
from forbear.testing.cloud.fields import text
from forbear.testing.cloud.model import etag_of
from forbear.testing.cloud.resources import listing
from forbear.testing.cloud.wire import NO_CONTENT, JsonObject, Reply, json_reply

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
