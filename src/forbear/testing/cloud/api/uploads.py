"""objects.insert in its three forms: media, multipart and resumable; how an upload is received is elsewhere."""

from email.message import Message
from urllib.parse import quote, urlencode

from forbear.testing.cloud.api.acls import predefined_acl
from forbear.testing.cloud.api.objects import object_reply
from forbear.testing.cloud.api.resumable import HASHES, asks, cancel, commit, incomplete, proceed, start
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.content import Content
from forbear.testing.cloud.http.errors import ApiError, invalid, required
from forbear.testing.cloud.http.messages import JsonObject, Reply, Request
from forbear.testing.cloud.operations import CANCEL, INSERT, QUERY, SEND, START
from forbear.testing.cloud.storage.encryption import read_key
from forbear.testing.cloud.storage.fields import json_object, text
from forbear.testing.cloud.storage.retention import check_object_retention
from forbear.testing.cloud.storage.store import check_object_name
from forbear.testing.cloud.storage.writable import acl_field, merged, object_fields


def step(request: Request) -> str:
    """Which step of an insert the request is; a plain upload is the operation itself."""
    if "upload_id" in request.query:
        if request.method == "DELETE":
            return CANCEL
        return QUERY if asks(request) else SEND
    return START if request.query.get("uploadType") == "resumable" else INSERT


def named(call: Call) -> str:
    """The name of the object that an upload is to make: in the query, or in the metadata."""
    name = call.query.get("name")
    if name:
        return name
    return text(_read_multipart(call.request)[0] if _is_multipart(call.request) else call.body(), "name")


def media_start(request: Request) -> int:
    """Where in the body the bytes of the object begin: after the metadata, if there is any; 0 if nobody can tell."""
    try:
        return _read_multipart(request)[2].start if _is_multipart(request) else 0
    except ApiError:
        return 0


def insert(call: Call) -> Reply:
    """Take an upload, or one step of a resumable one."""
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


def _is_multipart(request: Request) -> bool:
    return request.query.get("uploadType") == "multipart"


def _read_multipart(request: Request) -> tuple[JsonObject, str | None, slice]:
    return read_multipart(request.headers.get("content-type", ""), request.body)


def _insert_at_once(call: Call, metadata: JsonObject, content_type: str | None, data: Content) -> Reply:
    name, fields, acl = _described(call, metadata, content_type)
    return object_reply(
        call,
        commit(
            call,
            call.names["bucket"],
            name,
            data,
            fields,
            call.conditions(),
            acl,
            INSERT,
            read_key(call.request.headers),
        ),
    )


def _described(
    call: Call, metadata: JsonObject, content_type: str | None
) -> tuple[str, JsonObject, dict[str, str] | None]:
    """Name, fields and access controls of the object to be; the hashes to check are kept among the fields."""
    name = call.query.get("name") or text(metadata, "name")
    check_object_name(name)
    fields = merged({"contentType": content_type or "application/octet-stream"}, object_fields(metadata))
    if "contentEncoding" in call.query:
        fields["contentEncoding"] = call.query["contentEncoding"]
    fields.update({key: metadata[key] for key in HASHES if metadata.get(key)})
    check_object_retention(call.bucket(), {}, fields, override=False)
    acl = acl_field(metadata, "acl") or predefined_acl(call.query, "predefinedAcl", call.bucket().project)
    return name, fields, acl


def _start(call: Call) -> Reply:
    name, fields, acl = _described(call, call.body(), call.request.headers.get("x-upload-content-type"))
    session = start(call, call.names["bucket"], name, fields, call.conditions(), acl)
    query = urlencode({"uploadType": "resumable", "name": name, "upload_id": session.id})
    location = f"{call.base}/upload/storage/v1/b/{quote(session.bucket, safe='')}/o?{query}"
    return Reply(200, (("Location", location), ("X-GUploader-UploadID", session.id)))


def _continue(call: Call) -> Reply:
    session = proceed(call, INSERT)
    return incomplete(call, session) if session.finished is None else object_reply(call, session.finished)


def read_multipart(content_type: str, body: bytes) -> tuple[JsonObject, str | None, slice]:
    """The metadata, the media's content type (None when not given) and where the media is; 400 for any other shape."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/related" or not isinstance(boundary, str) or not boundary:
        raise invalid("A multipart upload needs a Content-Type of multipart/related with a boundary.")
    delimiter = b"--" + boundary.strip("'").encode("latin-1", "replace")
    line_end = _line_end(body, delimiter)
    metadata, media = _parts(body, line_end, delimiter)
    _, content = _part(body, line_end, metadata)
    media_type, place = _part(body, line_end, media)
    return json_object(body[content]), media_type, place


def _line_end(body: bytes, delimiter: bytes) -> bytes:
    """That of the first delimiter stands for all of them."""
    first = body.find(b"\n", body.find(delimiter) + len(delimiter))
    return b"\n" if first > 0 and body[first - 1 : first] != b"\r" else b"\r\n"


def _parts(body: bytes, line_end: bytes, delimiter: bytes) -> tuple[slice, slice]:
    """What stands between the three delimiters; the body is searched and not cut up, for it may be large."""
    line = line_end + delimiter
    # The first delimiter may open the body, and then no line end comes before it; otherwise there is a preamble.
    places = [-len(line_end)] if body.startswith(delimiter) else []
    place = body.find(line)
    while place >= 0 and len(places) < 4:
        places.append(place)
        place = body.find(line, place + len(line))
    if len(places) != 3 or not body.startswith(b"--", places[2] + len(line)):
        raise invalid("A multipart upload has exactly two parts, the metadata and the media, and a closing boundary.")
    first, second, third = places
    return slice(first + len(line), second), slice(second + len(line), third)


def _part(body: bytes, line_end: bytes, place: slice) -> tuple[str | None, slice]:
    """The content type and the place of the content of one part."""
    empty_line = line_end * 2
    blank = body.find(empty_line, place.start, place.stop)
    head = body[place.start : max(blank, 0)]
    if not head.lstrip(b" \t").startswith(line_end) and not body.startswith(empty_line, place.start):
        raise invalid("A part of a multipart upload has headers, an empty line and the content.")
    content = slice(blank + len(empty_line), place.stop)
    for line in head.split(line_end):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip(), content
    return None, content
