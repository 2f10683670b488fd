"""Resumable uploads: start, send, ask and cancel; the protocol is that of the JSON API, told by headers."""

from forbear.testing.cloud import receiving
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.store import check_object_name
from forbear.testing.cloud.wire import Reply
from forbear.testing.cloud.xml import buckets, headers

UPLOAD = "xml.object.put"
"""The effect is that of an upload in one request."""


def start_session(call: Call) -> Reply:
    """Begin a session, whose URI is in the Location of the reply."""
    given, name, bucket = call.request.headers, call.names["object"], buckets.found(call)
    if (headers.goog(given, "resumable") or "").lower() != "start":
        raise invalid("Invalid value for x-goog-resumable: it must be start.")
    check_object_name(name)
    acl = headers.acl(given, bucket.project)
    session = receiving.start(call, bucket.name, name, headers.fields(given), headers.conditions(given), acl)
    location = f"{call.base}{call.request.path}?upload_id={session.id}"
    return Reply(201, (("Location", location), ("X-GUploader-UploadID", session.id)))


def continue_session(call: Call) -> Reply:
    """Take a chunk or a status query."""
    session = receiving.proceed(call, UPLOAD)
    if session.finished is None:
        return receiving.incomplete(call, session)
    return Reply(200, headers.version(session.finished))


def cancel_session(call: Call) -> Reply:
    """Forget a session."""
    return receiving.cancel(call)
