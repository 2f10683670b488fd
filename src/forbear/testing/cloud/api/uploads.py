"""objects.insert in its three forms: media, multipart and resumable; the rules of a session are in `sessions`."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from forbear.testing.cloud.api.objects import object_reply
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.conditions import Conditions
from forbear.testing.cloud.errors import ApiError, invalid, not_found, required
from forbear.testing.cloud.fields import integer
from forbear.testing.cloud.model import StoredObject, crc32c_of, md5_of
from forbear.testing.cloud.multipart import read_multipart
from forbear.testing.cloud.operations import CANCEL, INSERT, QUERY, SEND, START
from forbear.testing.cloud.predefined import predefined_acl
from forbear.testing.cloud.sessions import Session
from forbear.testing.cloud.store import check_object_name
from forbear.testing.cloud.wire import Json, JsonObject, Reply, Request
from forbear.testing.cloud.writable import acl_field, merged, object_fields

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)")
_HASHES = ("crc32c", "md5Hash")


def step(request: Request) -> str:
    """Which step of an insert the request is; a plain upload is the operation itself."""
    if "upload_id" in request.query:
        if request.method == "DELETE":
            return CANCEL
        return QUERY if request.headers.get("content-range", "").startswith("bytes */") else SEND
    return START if request.query.get("uploadType") == "resumable" else INSERT


def insert(call: Call) -> Reply:
    """Take an upload, or one step of a resumable one."""
    if not call.request.path.startswith("/upload/"):
        raise invalid("Uploads go to /upload/storage/v1/b/BUCKET/o with an uploadType.")
    if "upload_id" in call.query:
        return _cancel(call) if call.request.method == "DELETE" else _continue(call)
    if call.request.method != "POST":
        raise required("upload_id")
    content_type = call.request.headers.get("content-type")
    match call.query.get("uploadType"):
        case "media":
            return _insert_at_once(call, {}, content_type, call.request.body)
        case "multipart":
            return _insert_at_once(call, *read_multipart(content_type or "", call.request.body))
        case "resumable":
            return _start(call)
        case None:
            raise required("uploadType")
        case other:
            raise invalid(f"Invalid value for uploadType: '{other[:80]}'. It must be media, multipart or resumable.")


def _insert_at_once(call: Call, metadata: JsonObject, content_type: str | None, data: bytes) -> Reply:
    name, fields, acl = _described(call, metadata, content_type)
    return object_reply(call, _commit(call, call.names["bucket"], name, data, fields, call.conditions(), acl))


def _described(
    call: Call, metadata: JsonObject, content_type: str | None
) -> tuple[str, JsonObject, dict[str, str] | None]:
    """Name, fields and access controls of the object to be; the hashes to check are kept among the fields."""
    name = call.query.get("name") or metadata.get("name")
    if not name:
        raise required("name")
    if not isinstance(name, str):
        raise invalid("Invalid value for name: it must be a string.")
    check_object_name(name)
    fields = merged({"contentType": content_type or "application/octet-stream"}, object_fields(metadata))
    if "contentEncoding" in call.query:
        fields["contentEncoding"] = call.query["contentEncoding"]
    fields.update({key: metadata[key] for key in _HASHES if metadata.get(key)})
    acl = acl_field(metadata, "acl") or predefined_acl(call.query, "predefinedAcl", call.bucket().project)
    return name, fields, acl


def _commit(
    call: Call,
    bucket: str,
    name: str,
    data: bytes,
    fields: Mapping[str, Json],
    conditions: Conditions,
    acl: dict[str, str] | None,
) -> StoredObject:
    """Make the object, if the hashes agree and the conditions hold at this moment."""
    conditions.check_write(call.store.bucket(bucket).live(name))
    _check_hashes(data, {**{key: fields[key] for key in _HASHES if key in fields}, **_header_hashes(call.request)})
    kept = {key: value for key, value in fields.items() if key not in _HASHES}
    item = call.store.put(bucket, name, data, kept, acl=acl)
    call.committed(item.resource, item.generation, INSERT)
    return item


def _header_hashes(request: Request) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in request.headers.get("x-goog-hash", "").split(","):
        kind, _, value = part.strip().partition("=")
        if kind in {"crc32c", "md5"}:
            found["crc32c" if kind == "crc32c" else "md5Hash"] = value
    return found


def _check_hashes(data: bytes, claimed: Mapping[str, Json]) -> None:
    for name, value in claimed.items():
        computed = crc32c_of(data) if name == "crc32c" else md5_of(data)
        if value != computed:
            raise invalid(f"Provided {name} {value!r} doesn't match calculated {name} {computed!r}.")


def _start(call: Call) -> Reply:
    headers = call.request.headers
    name, fields, acl = _described(call, call.body(), headers.get("x-upload-content-type"))
    conditions = call.conditions()
    conditions.check_write(call.bucket().live(name))
    length = headers.get("x-upload-content-length")
    total = None if length is None else integer(length, "X-Upload-Content-Length")
    if total is not None and total < 0:
        raise invalid("Invalid value for X-Upload-Content-Length: it must not be negative.")
    session = Session(f"upload-{call.store.next_id()}", call.names["bucket"], name, fields, conditions, total, acl)
    call.store.sessions[session.id] = session
    query = urlencode({"uploadType": "resumable", "name": name, "upload_id": session.id})
    location = f"{call.base}/upload/storage/v1/b/{quote(session.bucket, safe='')}/o?{query}"
    return Reply(200, (("Location", location), ("X-GUploader-UploadID", session.id)))


def _session(call: Call) -> Session:
    session = call.store.sessions.get(call.query["upload_id"])
    if session is None or session.bucket != call.names["bucket"]:
        raise not_found("The upload session")
    if session.gone is not None:
        raise ApiError(session.gone, "The upload session is gone: start a new one.")
    return session


def _continue(call: Call) -> Reply:
    """Take a chunk or a status query, and commit once everything is here."""
    session = _session(call)
    if session.finished is not None:
        return object_reply(call, session.finished)
    offset, length, total = _content_range(call.request)
    if length != len(call.request.body):
        raise invalid(f"Content-Range stands for {length} bytes, the body has {len(call.request.body)}.")
    if total is not None:
        session.set_total(total)
    if offset is not None:
        session.receive(offset, call.request.body)
    if not session.complete:
        return _incomplete(session)
    data = bytes(session.data)
    session.finished = _commit(
        call, session.bucket, session.name, data, session.fields, session.conditions, session.acl
    )
    session.data = bytearray()
    return object_reply(call, session.finished)


def _incomplete(session: Session) -> Reply:
    have = (("Range", f"bytes=0-{len(session.data) - 1}"),) if session.data else ()
    return Reply(308, (*have, ("X-GUploader-UploadID", session.id)))


def _content_range(request: Request) -> tuple[int | None, int, int | None]:
    """Where the chunk starts (None: a query, no chunk), how long it claims to be, and the total size if known."""
    header = request.headers.get("content-range")
    if header is None:
        length = integer(request.headers.get("content-length", str(len(request.body))), "Content-Length")
        return 0, length, length
    found = _CONTENT_RANGE.fullmatch(header.strip())
    if found is None:
        raise invalid(f"Invalid Content-Range header: '{header[:80]}'. Use bytes FIRST-LAST/TOTAL or bytes */TOTAL.")
    first, last, size = found.groups()
    total = None if size == "*" else int(size)
    return (None, 0, total) if first is None else (int(first), int(last) - int(first) + 1, total)


def _cancel(call: Call) -> Reply:
    session = _session(call)
    session.gone = 410
    session.data = bytearray()
    raise ApiError(499, "Client Closed Request: the upload was cancelled.")


def keep_part(call: Call, body: bytes) -> None:
    """Store what arrived of a chunk whose connection broke; what does not fit the session is dropped."""
    try:
        session = _session(call)
        offset, _, total = _content_range(call.request)
        if offset is not None and session.finished is None:
            if total is not None:
                session.set_total(total)
            session.receive(offset, body, enforce=False)
    except ApiError:
        return


def expire(call: Call, status: int) -> None:
    """Forget a session; it answers `status` from now on."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        session.gone = status
        session.data = bytearray()
