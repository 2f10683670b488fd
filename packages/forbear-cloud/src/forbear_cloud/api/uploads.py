"""Upload an object (objects.insert) as media, as multipart or in a resumable session."""

from email.message import Message
from functools import lru_cache
from urllib.parse import quote, urlencode

from forbear_cloud.api.objects import object_response
from forbear_cloud.api.resumable import HASHES, cancel, commit, incomplete, is_status_query, proceed, start
from forbear_cloud.call import ApiCall
from forbear_cloud.http.content import Content
from forbear_cloud.http.messages import ApiError, HttpRequest, HttpResponse, JsonObject, invalid, required
from forbear_cloud.operations import CANCEL, INSERT, QUERY, SEND, START
from forbear_cloud.storage.encryption import keys_for
from forbear_cloud.storage.fields import json_object, text
from forbear_cloud.storage.retention import check_object_retention
from forbear_cloud.storage.sessions import TargetObject
from forbear_cloud.storage.writable import (
    acl_field,
    check_object_name,
    find_predefined_acl,
    merge_patch,
    object_fields,
)

_LONGEST_KEPT = 1024


def step(request: HttpRequest) -> str:
    """Return the operation id of a request for objects.insert: that of its step if it belongs to a resumable upload."""
    if "upload_id" in request.query:
        if request.method == "DELETE":
            return CANCEL
        return QUERY if is_status_query(request) else SEND
    return START if request.query.get("uploadType") == "resumable" else INSERT


def object_name(call: ApiCall) -> str:
    """Return the name of the object that an upload is to create, from the query or else from the metadata.

    Raise 400 if neither has one.
    """
    name = call.query.get("name")
    if name:
        return name
    return text(_read_multipart(call.request)[0] if _is_multipart(call.request) else call.body(), "name")


def media_start(request: HttpRequest) -> int:
    """Return the index in the body at which the bytes of the object begin, after any metadata.

    It is 0 if the upload is not multipart or cannot be read.
    """
    try:
        return _read_multipart(request)[2].start if _is_multipart(request) else 0
    except ApiError:
        return 0


def insert(call: ApiCall) -> HttpResponse:
    """Create an object from an upload, or handle one step of a resumable upload.

    `uploadType` in the query says which (media, multipart or resumable), and `upload_id` names a session that has
    begun. Respond 400 without either.
    """
    if not call.request.path.startswith(("/upload/", "/resumable/upload/")):
        raise invalid("Uploads go to /upload/storage/v1/b/BUCKET/o with an uploadType.")
    if "upload_id" in call.query:
        return cancel(call) if call.request.method == "DELETE" else _continue(call)
    if call.request.method != "POST":
        raise required("upload_id")
    content_type = call.request.headers.get("content-type")
    match call.query.get("uploadType"):
        case "media":
            return _insert_at_once(call, {}, content_type, call.request.content)
        case "multipart":
            metadata, media_type, media = _read_multipart(call.request)
            return _insert_at_once(call, metadata, media_type, call.request.content.cut(media.start, media.stop))
        case "resumable":
            return _start(call)
        case None:
            raise required("uploadType")
        case other:
            raise invalid(f"Invalid value for uploadType: '{other[:80]}'. It must be media, multipart or resumable.")


def _insert_at_once(call: ApiCall, metadata: JsonObject, content_type: str | None, data: Content) -> HttpResponse:
    """Create an object from the bytes in one request, and respond with its resource."""
    return object_response(call, commit(call, _target(call, metadata, content_type), data, INSERT))


def _target(call: ApiCall, metadata: JsonObject, content_type: str | None) -> TargetObject:
    """Return the description of the object to create, from the query, the headers and the metadata.

    It contains the hashes that the metadata states. Raise 400 for a bad name or field.
    """
    bucket, name = call.bucket(), call.query.get("name") or text(metadata, "name")
    check_object_name(name)
    fields = merge_patch({"contentType": content_type or "application/octet-stream"}, object_fields(metadata))
    if "contentEncoding" in call.query:
        fields["contentEncoding"] = call.query["contentEncoding"]
    fields.update({key: metadata[key] for key in HASHES if metadata.get(key)})
    check_object_retention(bucket, {}, fields)
    acl = acl_field(metadata, "acl") or find_predefined_acl(call.query, "predefinedAcl", bucket.project)
    keys = keys_for(bucket, call.request.headers, call.query.get("kmsKeyName") or metadata.get("kmsKeyName"))
    return TargetObject(bucket.name, name, fields, acl, call.conditions(), keys)


def _start(call: ApiCall) -> HttpResponse:
    """Begin a resumable upload, and respond 200 with the URL of its session as Location."""
    session = start(call, _target(call, call.body(), call.request.headers.get("x-upload-content-type")))
    query = urlencode({"uploadType": "resumable", "name": session.target.name, "upload_id": session.id})
    location = f"{call.base}/upload/storage/v1/b/{quote(session.target.bucket, safe='')}/o?{query}"
    return HttpResponse(200, (("Location", location), ("X-GUploader-UploadID", session.id)))


def _continue(call: ApiCall) -> HttpResponse:
    """Handle a chunk or a status query of a resumable upload.

    Respond with the object's resource once the upload is finished, otherwise 308 with the bytes received so far.
    """
    session = proceed(call, INSERT)
    return incomplete(call, session) if session.finished is None else object_response(call, session.finished)


def _is_multipart(request: HttpRequest) -> bool:
    return request.query.get("uploadType") == "multipart"


def _read_multipart(request: HttpRequest) -> tuple[JsonObject, str | None, slice]:
    return read_multipart(request.headers.get("content-type", ""), request.body)


@lru_cache(64)  # a client that sends many files uses the same boundary for all
def multipart_delimiter(content_type: str, expected: str) -> bytes | None:
    """Return "--" and the boundary in `content_type`, which separate the parts of a body.

    Return None unless the type is `expected` and has a boundary. As the service does, accept a boundary in single
    quotes, which gsutil and gcsfs send.
    """
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != expected or not isinstance(boundary, str) or not boundary:
        return None
    return b"--" + boundary.strip("'").encode("latin-1", "replace")


def read_multipart(content_type: str, body: bytes) -> tuple[JsonObject, str | None, slice]:
    """Read a multipart/related body: one part of JSON metadata, then one part of media.

    Return the metadata, the content type of the media (None if absent) and the slice of the body that is the media.
    Raise 400 for any other shape. Lines end with CRLF or, as some clients send them, all with LF.
    """
    delimiter = multipart_delimiter(content_type, "multipart/related")
    if delimiter is None:
        raise invalid("A multipart upload needs a Content-Type of multipart/related with a boundary.")
    line_end = _line_end(body, delimiter)
    metadata, media = _parts(body, line_end, delimiter)
    _, content = _part(body, line_end, metadata)
    media_type, media_content = _part(body, line_end, media)
    return json_object(body[content]), media_type, media_content


def _line_end(body: bytes, delimiter: bytes) -> bytes:
    """Return the line end of the first delimiter, CRLF or LF, which all lines are to share; CRLF if there is none."""
    first = body.find(b"\n", body.find(delimiter) + len(delimiter))
    return b"\n" if first > 0 and body[first - 1 : first] != b"\r" else b"\r\n"


def _parts(body: bytes, line_end: bytes, delimiter: bytes) -> tuple[slice, slice]:
    """Return the slices of the two parts between the delimiters; the body, which may be large, is not copied.

    Raise 400 unless there are exactly two parts and a closing delimiter.
    """
    line = line_end + delimiter
    # A body that begins with the delimiter has no line end before it; otherwise it begins with a preamble.
    positions = [-len(line_end)] if body.startswith(delimiter) else []
    position = body.find(line)
    while position >= 0 and len(positions) < 4:
        positions.append(position)
        position = body.find(line, position + len(line))
    if len(positions) != 3 or not body.startswith(b"--", positions[2] + len(line)):
        raise invalid("A multipart upload must have two parts, the metadata and the media, and a closing boundary.")
    first, second, third = positions
    return slice(first + len(line), second), slice(second + len(line), third)


def _part(body: bytes, line_end: bytes, part: slice) -> tuple[str | None, slice]:
    """Return the content type of one part (None if absent) and the slice of its content, after the first empty line.

    Raise 400 if it has no empty line, or text on the line of its delimiter.
    """
    empty_line = line_end * 2
    blank = body.find(empty_line, part.start, part.stop)
    head = body[part.start : max(blank, 0)]
    if not head.lstrip(b" \t").startswith(line_end) and not body.startswith(empty_line, part.start):
        raise invalid("A part of a multipart upload must have headers, an empty line and the content.")
    content = slice(blank + len(empty_line), part.stop)
    find = _find_content_type if len(head) <= _LONGEST_KEPT else _find_content_type.__wrapped__
    return find(head, line_end), content


@lru_cache(64)  # the heads of the parts are the same for many files
def _find_content_type(head: bytes, line_end: bytes) -> str | None:
    for line in head.split(line_end):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip()
    return None
