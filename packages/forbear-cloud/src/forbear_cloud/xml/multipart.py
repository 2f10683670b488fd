"""Multipart uploads of the XML API: start, parts, list, complete and abort; only `complete` creates an object."""

import re

from forbear_cloud.call import ApiCall
from forbear_cloud.http.content import Content, join_contents
from forbear_cloud.http.messages import ApiError, HttpResponse, invalid
from forbear_cloud.storage.encryption import check_source_key, key_error, read_key
from forbear_cloud.storage.fields import integer
from forbear_cloud.storage.sessions import MultipartUpload
from forbear_cloud.xml import headers
from forbear_cloud.xml.buckets import find_bucket
from forbear_cloud.xml.document import MULTIPART, Element, leaf, no_such_upload, node, read, xml_response
from forbear_cloud.xml.headers import etag_of, etag_of_part, quote_etag
from forbear_cloud.xml.objects import source_of

_MIN_SIZE = 5 * 1024 * 1024
_MAX_PARTS = 10_000
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")


def start(call: ApiCall) -> HttpResponse:
    """Begin a multipart upload to the object of the path, and respond with its id.

    If the response is lost, the client never learns the id, and at the real service the upload costs money until it is
    aborted.
    """
    target = headers.target(call.request.headers, find_bucket(call), call.names["object"])
    upload_id = f"multipart-{call.store.next_id()}"
    call.store.multiparts[upload_id] = MultipartUpload(target)
    call.commit(f"{target.bucket}/{target.name}")
    return xml_response(node("InitiateMultipartUploadResult", *_names(call, upload_id)), namespace=MULTIPART)


def put_part(call: ApiCall) -> HttpResponse:
    """Store the body as a part of an upload, in place of any part with the same number; respond with its hashes."""
    body = call.request.content
    etag = _store(call, body)
    return HttpResponse(200, (("ETag", quote_etag(etag)), ("x-goog-hash", f"crc32c={body.crc32c},md5={body.md5}")))


def copy_part(call: ApiCall) -> HttpResponse:
    """Store a part that is copied from an object, or from the range of its bytes in x-goog-copy-source-range.

    Respond 416 if the object does not have all bytes of that range.
    """
    item = source_of(call)
    check_source_key(item, call.request.headers)
    data, wanted = item.content, headers.goog(call.request.headers, "copy-source-range")
    if wanted is not None:
        match = _RANGE.fullmatch(wanted.strip())
        if match is None or not int(match[1]) <= int(match[2]) < len(data):
            raise ApiError(416, "The range of the source is not satisfiable.")
        data = data.cut(int(match[1]), int(match[2]) + 1)
    call.store.claim([data])
    return xml_response(node("CopyPartResult", leaf("ETag", quote_etag(_store(call, data)))), namespace=MULTIPART)


def list_parts(call: ApiCall) -> HttpResponse:
    """List the parts that an upload has so far, by number."""
    upload = _upload(call)
    parts = [
        node("Part", leaf("PartNumber", number), leaf("ETag", quote_etag(etag_of_part(data))), leaf("Size", len(data)))
        for number, data in sorted(upload.parts.items())
    ]
    return xml_response(node("ListPartsResult", *_names(call, call.query["uploadId"]), *parts), namespace=MULTIPART)


def list_uploads(call: ApiCall) -> HttpResponse:
    """List the multipart uploads to a bucket that are neither complete nor aborted."""
    bucket = find_bucket(call)
    uploads = [
        node("Upload", leaf("Key", upload.target.name), leaf("UploadId", upload_id))
        for upload_id, upload in call.store.multiparts.items()
        if upload.target.bucket == bucket.name
    ]
    return xml_response(node("ListMultipartUploadsResult", leaf("Bucket", bucket.name), *uploads), namespace=MULTIPART)


def complete(call: ApiCall) -> HttpResponse:
    """Join the parts that the body names into an object, and end the upload; preconditions have no effect.

    Respond 400 unless the body names at least one stored part, in ascending order, each with its entity tag. Respond
    400, too, if a part other than the last has less than 5 MiB.
    """
    upload = _upload(call)
    target = upload.target
    wanted = [
        (integer(part.value("PartNumber"), "PartNumber"), part.value("ETag") or "")
        for part in read(call.request.body, "CompleteMultipartUpload").all("Part")
    ]
    numbers = [number for number, _ in wanted]
    if not numbers:
        raise ApiError(400, "An upload must have at least one part.", "MalformedXML")
    if numbers != sorted(set(numbers)):
        raise ApiError(400, "The list of parts was not in ascending order.", "InvalidPartOrder")
    data = [_part(upload, number, etag) for number, etag in wanted]
    if any(len(part) < _MIN_SIZE for part in data[:-1]):
        raise ApiError(400, f"A part other than the last must have at least {_MIN_SIZE} bytes.", "EntityTooSmall")
    item = call.store.put(
        target.bucket,
        target.name,
        join_contents(data),
        target.fields,
        acl=target.acl,
        components=len(data),
        keys=target.keys,
    )
    del call.store.multiparts[call.query["uploadId"]]
    call.commit(item.resource, item.generation)
    result = (leaf("Bucket", item.bucket), leaf("Key", item.name), leaf("ETag", quote_etag(etag_of(item))))
    root = node("CompleteMultipartUploadResult", *result)
    return xml_response(root, headers=headers.generation(item), namespace=MULTIPART)


def abort(call: ApiCall) -> HttpResponse:
    """Delete a multipart upload with its parts, and respond 204."""
    target = _upload(call).target
    del call.store.multiparts[call.query["uploadId"]]
    return call.commit_deletion(f"{target.bucket}/{target.name}")


def _part(upload: MultipartUpload, number: int, etag: str) -> Content:
    """Return the content of the part with this number; raise 400 unless it exists and has this entity tag."""
    data = upload.parts.get(number)
    if data is None or etag.strip('"') != etag_of_part(data):
        raise ApiError(400, f"Part {number} could not be found, or its ETag did not match.", "InvalidPart")
    return data


def _store(call: ApiCall, data: Content) -> str:
    """Store `data` as the part whose number (1 to 10,000) is in the query, and return its entity tag.

    Raise 400 for another number, or for another encryption key in the headers than the upload began with.
    """
    upload = _upload(call)
    number = integer(call.query.get("partNumber"), "partNumber")
    if not 1 <= number <= _MAX_PARTS:
        raise invalid(f"Invalid value for partNumber: it must be from 1 to {_MAX_PARTS}, got {number}.")
    if read_key(call.request.headers) != upload.target.keys.sha256:
        raise key_error("A part needs the encryption key that its upload began with.")
    upload.parts[number] = data
    call.commit(f"{upload.target.bucket}/{upload.target.name}?partNumber={number}")
    return etag_of_part(data)


def _upload(call: ApiCall) -> MultipartUpload:
    """Return the upload whose id is in the query; raise 404 unless it exists and belongs to the object of the path."""
    find_bucket(call)
    upload = call.store.multiparts.get(call.query["uploadId"])
    names = (call.names["bucket"], call.names["object"])
    if upload is None or (upload.target.bucket, upload.target.name) != names:
        raise no_such_upload()
    return upload


def _names(call: ApiCall, upload_id: str) -> list[Element]:
    return [leaf("Bucket", call.names["bucket"]), leaf("Key", call.names["object"]), leaf("UploadId", upload_id)]
