"""How uploads become objects: hashes, preconditions, and the steps of a resumable session; JSON and XML share it."""

import re
from collections.abc import Mapping
from dataclasses import replace

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.content import Content, Growing
from forbear.testing.cloud.http.errors import ApiError, invalid, not_found
from forbear.testing.cloud.http.messages import Json, JsonObject, Reply, Request
from forbear.testing.cloud.storage.conditions import Conditions
from forbear.testing.cloud.storage.encryption import read_key
from forbear.testing.cloud.storage.fields import integer
from forbear.testing.cloud.storage.model import StoredObject
from forbear.testing.cloud.storage.sessions import Session

HASHES = ("crc32c", "md5Hash")
"""The fields by which a client says what it means to send; they are checked, and not kept as it wrote them."""

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18}|\*)|\*)/(\d{1,18}|\*)")


def commit(
    call: Call,
    bucket: str,
    name: str,
    data: Content,
    fields: Mapping[str, Json],
    conditions: Conditions,
    acl: dict[str, str] | None,
    operation: str,
    key: str | None,
) -> StoredObject:
    """Make the object, if the hashes agree and the conditions hold at this moment; `key` is the hash of its key."""
    conditions.check_write(call.store.bucket(bucket).live(name))
    _check_hashes(data, {**{key: fields[key] for key in HASHES if key in fields}, **_header_hashes(call.request)})
    kept = {key: value for key, value in fields.items() if key not in HASHES}
    item = call.store.put(bucket, name, data, kept, acl=acl, key_sha256=key)
    call.committed(item.resource, item.generation, operation)
    return item


def _header_hashes(request: Request) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in request.headers.get("x-goog-hash", "").split(","):
        kind, _, value = part.strip().partition("=")
        if kind in {"crc32c", "md5"}:
            found["crc32c" if kind == "crc32c" else "md5Hash"] = value
    return found


def _check_hashes(data: Content, claimed: Mapping[str, Json]) -> None:
    for name, value in claimed.items():
        computed = data.crc32c if name == "crc32c" else data.md5
        if value != computed:
            raise invalid(f"Provided {name} {value!r} doesn't match calculated {name} {computed!r}.")


def asks(request: Request) -> bool:
    """Whether a request to a session only asks for its state."""
    return request.headers.get("content-range", "").startswith("bytes */")


def start(
    call: Call, bucket: str, name: str, fields: JsonObject, conditions: Conditions, acl: dict[str, str] | None
) -> Session:
    """Begin a session, if the conditions hold now; they will have to hold at its end, too."""
    conditions.check_write(call.store.bucket(bucket).live(name))
    length = call.request.headers.get("x-upload-content-length")
    total = None if length is None else integer(length, "X-Upload-Content-Length")
    if total is not None and total < 0:
        raise invalid("Invalid value for X-Upload-Content-Length: it must not be negative.")
    key = read_key(call.request.headers)
    session = Session(f"upload-{call.store.next_id()}", bucket, name, fields, conditions, total, acl, key)
    call.store.open_session(session)
    return session


def proceed(call: Call, operation: str) -> Session:
    """Take a chunk or a status query, and commit once everything is here: then the session is `finished`."""
    session = _session(call)
    if read_key(call.request.headers) not in {None, session.key_sha256}:
        text = "The encryption key is not the one that the upload began with."
        raise ApiError(400, text, "customerEncryptionKeyIsIncorrect")
    if session.finished is not None:
        return session
    offset, length, total = _content_range(call.request)
    if length != len(call.request.content):
        raise invalid(f"Content-Range stands for {length} bytes, the body has {len(call.request.content)}.")
    if total is not None:
        session.set_total(total)
    if offset is not None:
        session.receive(offset, call.request.content)
    if session.complete:
        data = session.data.content()
        try:
            item = commit(
                call,
                session.bucket,
                session.name,
                data,
                session.fields,
                session.conditions,
                session.acl,
                operation,
                session.key_sha256,
            )
        except ApiError as error:
            # Wrong bytes stay wrong: a later query, which brings no hash, must not make an object of them.
            if error.status == 400:
                session.gone = 410
                session.data = Growing()
            raise
        # Another query gets the same answer, but must not keep the bytes of an object that is deleted by then.
        session.finished = replace(item, content=item.content.without_bytes())
        session.data = Growing()
    return session


def incomplete(call: Call, session: Session) -> Reply:
    """308 with what has arrived so far; for clients that take 308 for a redirect, as Go's, 200 that stands for it."""
    have = (("Range", f"bytes=0-{len(session.data) - 1}"),) if len(session.data) else ()
    headers = (*have, ("X-GUploader-UploadID", session.id))
    if call.request.headers.get("x-guploader-no-308") == "yes":
        return Reply(200, (*headers, ("X-HTTP-Status-Code-Override", "308")))
    return Reply(308, headers)


def cancel(call: Call) -> Reply:
    """Forget a session at its owner's wish, which is answered with 499."""
    session = _session(call)
    session.gone = 499
    session.data = Growing()
    raise ApiError(499, "Client Closed Request: the upload was cancelled.")


def keep_part(call: Call, body: Content) -> Session | None:
    """Store what arrived of a chunk whose connection broke; None where it does not fit an open session: dropped."""
    try:
        session = _session(call)
        offset, _, total = _content_range(call.request, whole=False)
        if offset is None or session.finished is not None:
            return None
        if total is not None:
            session.set_total(total)
        session.receive(offset, body, enforce=False)
    except ApiError:
        return None
    return session


def rewind(call: Call, to: int) -> Reply | None:
    """Lose all but `to` bytes of a session, and say what is left; None where there is nothing to lose."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is None or session.gone is not None or len(session.data) <= to:
        return None
    session.data.keep(to)
    return incomplete(call, session)


def expire(call: Call, status: int) -> None:
    """Forget a session; it answers `status` from now on."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        session.gone = status
        session.data = Growing()


def _session(call: Call) -> Session:
    session = call.store.sessions.get(call.query["upload_id"])
    if session is None or session.bucket != call.names["bucket"]:
        raise not_found("The upload session")
    if session.gone is not None:
        raise ApiError(session.gone, "The upload session is gone: start a new one.")
    return session


def _content_range(request: Request, *, whole: bool = True) -> tuple[int | None, int, int | None]:
    """Return where the chunk starts (None: a query, no chunk), how long it claims to be, and the total size if known.

    `bytes N-*/*` is a chunk that ends with the upload: if it came as a `whole`, it tells the size.
    """
    header = request.headers.get("content-range")
    if header is None:
        length = integer(request.headers.get("content-length", str(len(request.content))), "Content-Length")
        return 0, length, length
    found = _CONTENT_RANGE.fullmatch(header.strip())
    if found is None:
        raise invalid(f"Invalid Content-Range header: '{header[:80]}'. Use bytes FIRST-LAST/TOTAL or bytes */TOTAL.")
    first, last, size = found.groups()
    total = None if size == "*" else int(size)
    if first is None:
        return None, 0, total
    if last == "*":
        length = len(request.content)
        return int(first), length, int(first) + length if whole and total is None else total
    return int(first), int(last) - int(first) + 1, total
