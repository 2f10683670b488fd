"""Receive uploads for the JSON and XML APIs: check hashes and preconditions, and run resumable sessions."""

import re
from collections.abc import Mapping
from dataclasses import replace

from forbear_cloud.call import ApiCall
from forbear_cloud.http.content import Content
from forbear_cloud.http.messages import ApiError, HttpRequest, HttpResponse, Json, invalid, not_found
from forbear_cloud.storage.encryption import key_error, read_key
from forbear_cloud.storage.fields import integer
from forbear_cloud.storage.model import StoredObject
from forbear_cloud.storage.sessions import TargetObject, UploadSession

_HASH_FIELDS = {"crc32c": "crc32c", "md5": "md5Hash"}
HASHES = tuple(_HASH_FIELDS.values())
"""The metadata fields in which a client states the hashes of an upload; they are checked, and then computed."""

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18}|\*)|\*)/(\d{1,18}|\*)")


def commit(call: ApiCall, target: TargetObject, data: Content, operation: str) -> StoredObject:
    """Create the object that `target` describes, record it as an effect of `operation`, and return it.

    Raise 412 unless the conditions hold at this moment, and 400 unless the data has the hashes that the metadata and
    the x-goog-hash header state.
    """
    target.conditions.check_write(call.store.bucket(target.bucket).live(target.name))
    stated = {name: target.fields[name] for name in HASHES if name in target.fields}
    _check_hashes(data, {**stated, **_header_hashes(call.request)})
    fields = {name: value for name, value in target.fields.items() if name not in HASHES}
    item = call.store.put(target.bucket, target.name, data, fields, acl=target.acl, keys=target.keys)
    call.commit(item.resource, item.generation, operation)
    return item


def _header_hashes(request: HttpRequest) -> dict[str, str]:
    """Return the hashes in the x-goog-hash header, by the names of the metadata fields: crc32c and md5Hash."""
    parts = (part.strip().partition("=") for part in request.headers.get("x-goog-hash", "").split(","))
    return {_HASH_FIELDS[kind]: value for kind, _, value in parts if kind in _HASH_FIELDS}


def _check_hashes(data: Content, stated: Mapping[str, Json]) -> None:
    for name, value in stated.items():
        computed = data.crc32c if name == "crc32c" else data.md5
        if value != computed:
            raise invalid(f"Provided {name} {value!r} doesn't match calculated {name} {computed!r}.")


def is_status_query(request: HttpRequest) -> bool:
    """Return whether a request to a session sends no bytes, but asks how many have arrived.

    Such a request has a Content-Range that begins with "bytes */".
    """
    return request.headers.get("content-range", "").startswith("bytes */")


def start(call: ApiCall, target: TargetObject) -> UploadSession:
    """Begin a resumable upload and return its session; raise 412 unless the conditions of `target` hold.

    They must hold again when the upload ends. The total size comes from X-Upload-Content-Length, if that is sent.
    """
    target.conditions.check_write(call.store.bucket(target.bucket).live(target.name))
    length = call.request.headers.get("x-upload-content-length")
    total = None if length is None else integer(length, "X-Upload-Content-Length")
    if total is not None and total < 0:
        raise invalid("Invalid value for X-Upload-Content-Length: it must not be negative.")
    session = UploadSession(f"upload-{call.store.next_id()}", target, total)
    call.store.open_session(session)
    return session


def proceed(call: ApiCall, operation: str) -> UploadSession:
    """Handle a chunk or a status query of the session that the query names, and return the session.

    Once every byte has arrived, create the object, record that as an effect of `operation`, and finish the session. A
    finished session is returned as it is. Raise 404 if it does not exist, its status if it has ended, and 400 for a
    wrong chunk, key or hash.
    """
    session = _session(call)
    # The service takes chunks without a key, as Google's client in Go sends them.
    if read_key(call.request.headers) not in {None, session.target.keys.sha256}:
        raise key_error("The encryption key is not the one that the upload began with.")
    if session.finished is not None:
        return session
    offset, length, total = _content_range(call.request)
    if length != len(call.request.content):
        raise invalid(f"The Content-Range states {length} bytes, but the body has {len(call.request.content)}.")
    if total is not None:
        session.set_total(total)
    if offset is not None:
        session.receive(offset, call.request.content)
    if session.complete:
        try:
            item = commit(call, session.target, session.data.content(), operation)
        except ApiError as error:
            # Wrong bytes stay wrong: a later query, which states no hash, must not create an object from them.
            if error.status == 400:
                session.end(410)
            raise
        # A later query gets the same response, but must not keep the bytes in memory if the object is deleted.
        session.finish(replace(item, content=item.content.drop_bytes()))
    return session


def incomplete(call: ApiCall, session: UploadSession) -> HttpResponse:
    """Respond 308 (Resume Incomplete), with the range of the bytes received so far, if any.

    Clients that would follow a 308 as a redirect, as those in Go do, ask for a 200 that stands for it.
    """
    received = (("Range", f"bytes=0-{len(session.data) - 1}"),) if len(session.data) else ()
    headers = (*received, ("X-GUploader-UploadID", session.id))
    if call.request.headers.get("x-guploader-no-308") == "yes":
        return HttpResponse(200, (*headers, ("X-HTTP-Status-Code-Override", "308")))
    return HttpResponse(308, headers)


def cancel(call: ApiCall) -> HttpResponse:
    """End a session at the client's request by raising ApiError 499, the documented response.

    Later requests get 499 too.
    """
    _session(call).end(499)
    raise ApiError(499, "Client Closed Request: the upload was cancelled.")


def keep_part(call: ApiCall, body: Content) -> UploadSession | None:
    """Store `body`, the part that arrived of a chunk whose connection broke, and return the session.

    If no open session takes it, drop it and return None.
    """
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


def rewind(call: ApiCall, to: int) -> HttpResponse | None:
    """Drop all but the first `to` bytes of the session of the request, and respond that only these have arrived (308).

    Return None, and drop nothing, if there is no session, it has ended, or it has no more than `to` bytes.
    """
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is None or session.gone is not None or len(session.data) <= to:
        return None
    session.data.keep(to)
    return incomplete(call, session)


def expire(call: ApiCall, status: int) -> None:
    """End the session of the request, if there is one; this and all further requests to it get this status."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        session.end(status)


def _session(call: ApiCall) -> UploadSession:
    """Return the session of the request, which may be finished.

    Raise 404 if it does not exist in the bucket of the path. If it has expired or is cancelled, raise the status it
    ended with.
    """
    session = call.store.sessions.get(call.query["upload_id"])
    if session is None or session.target.bucket != call.names["bucket"]:
        raise not_found("The upload session")
    if session.gone is not None:
        raise ApiError(session.gone, "The upload session is gone: start a new one.")
    return session


def _content_range(request: HttpRequest, *, whole: bool = True) -> tuple[int | None, int, int | None]:
    """Return the offset of the chunk (None for a status query), its stated length, and the total size if known.

    `bytes N-*/*` is the last chunk of an upload; unless it broke off (`whole` is False), its end is the total size.
    Without a Content-Range the body is the whole object. Raise 400 if the header is malformed.
    """
    header = request.headers.get("content-range")
    if header is None:
        length = integer(request.headers.get("content-length", str(len(request.content))), "Content-Length")
        return 0, length, length
    match = _CONTENT_RANGE.fullmatch(header.strip())
    if match is None:
        raise invalid(f"Invalid Content-Range header: '{header[:80]}'. Use bytes FIRST-LAST/TOTAL or bytes */TOTAL.")
    first, last, size = match.groups()
    total = None if size == "*" else int(size)
    if first is None:
        return None, 0, total
    if last == "*":
        length = len(request.content)
        return int(first), length, int(first) + length if whole and total is None else total
    return int(first), int(last) - int(first) + 1, total
