"""Multipart uploads: start, parts, list, complete and abort; nobody sees an object before it is complete."""

import re

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.content import Content, joined
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import NO_CONTENT, Reply
from forbear.testing.cloud.storage.encryption import check_source_key, read_key
from forbear.testing.cloud.storage.fields import integer
from forbear.testing.cloud.storage.sessions import Upload
from forbear.testing.cloud.storage.store import check_object_name
from forbear.testing.cloud.xml import buckets, headers
from forbear.testing.cloud.xml.document import MULTIPART, Element, leaf, no_such_upload, read, xml_reply
from forbear.testing.cloud.xml.headers import etag_of, etag_of_part
from forbear.testing.cloud.xml.objects import copied

_SMALLEST = 5 * 1024 * 1024
_MOST_PARTS = 10_000
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")


def start(call: Call) -> Reply:
    """Begin an upload; a lost reply leaves one that nobody knows, and that is paid for until it is aborted."""
    bucket, name, given = buckets.found(call), call.names["object"], call.request.headers
    check_object_name(name)
    upload_id = f"multipart-{call.store.next_id()}"
    acl = headers.acl(given, bucket.project)
    call.store.multiparts[upload_id] = Upload(bucket.name, name, headers.fields(given), acl, read_key(given))
    call.committed(f"{bucket.name}/{name}")
    return xml_reply(Element("InitiateMultipartUploadResult", "", _names(call, upload_id)), namespace=MULTIPART)


def put_part(call: Call) -> Reply:
    """Store a part; one of the same number gives way."""
    body = call.request.content
    etag = _store(call, body)
    return Reply(200, (("ETag", f'"{etag}"'), ("x-goog-hash", f"crc32c={body.crc32c},md5={body.md5}")))


def copy_part(call: Call) -> Reply:
    """Store a part that is copied from an object, or from a range of one."""
    item = copied(call)
    check_source_key(item, call.request.headers)
    data, wanted = item.content, headers.goog(call.request.headers, "copy-source-range")
    if wanted is not None:
        found = _RANGE.fullmatch(wanted.strip())
        if found is None or not int(found[1]) <= int(found[2]) < len(data):
            raise ApiError(416, "The range of the source is not satisfiable.")
        data = data.cut(int(found[1]), int(found[2]) + 1)
    call.store.claim([data])
    return xml_reply(Element("CopyPartResult", "", [leaf("ETag", f'"{_store(call, data)}"')]), namespace=MULTIPART)


def list_parts(call: Call) -> Reply:
    """List the parts of an upload."""
    upload = _upload(call)
    parts = [
        Element("Part", "", [
            leaf("PartNumber", number), leaf("ETag", f'"{etag_of_part(data)}"'), leaf("Size", len(data))
        ])
        for number, data in sorted(upload.parts.items())
    ]  # fmt: skip
    return xml_reply(
        Element("ListPartsResult", "", [*_names(call, call.query["uploadId"]), *parts]), namespace=MULTIPART
    )


def list_uploads(call: Call) -> Reply:
    """List the uploads to a bucket that are not complete."""
    bucket = buckets.found(call)
    uploads = [
        Element("Upload", "", [leaf("Key", upload.name), leaf("UploadId", upload_id)])
        for upload_id, upload in call.store.multiparts.items()
        if upload.bucket == bucket.name
    ]
    return xml_reply(
        Element("ListMultipartUploadsResult", "", [leaf("Bucket", bucket.name), *uploads]), namespace=MULTIPART
    )


def complete(call: Call) -> Reply:
    """Join the parts named into an object; no precondition is documented here, and none is heeded."""
    upload = _upload(call)
    wanted = [
        (integer(part.value("PartNumber"), "PartNumber"), part.value("ETag") or "")
        for part in read(call.request.body, "CompleteMultipartUpload").all("Part")
    ]
    numbers = [number for number, _ in wanted]
    if not numbers:
        raise ApiError(400, "An upload has at least one part.", "MalformedXML")
    if numbers != sorted(set(numbers)):
        raise ApiError(400, "The list of parts was not in ascending order.", "InvalidPartOrder")
    data = [_part(upload, number, etag) for number, etag in wanted]
    if any(len(each) < _SMALLEST for each in data[:-1]):
        raise ApiError(400, f"A part other than the last must have at least {_SMALLEST} bytes.", "EntityTooSmall")
    item = call.store.put(
        upload.bucket,
        upload.name,
        joined(data),
        upload.fields,
        acl=upload.acl,
        components=len(data),
        key_sha256=upload.key_sha256,
    )
    del call.store.multiparts[call.query["uploadId"]]
    call.committed(item.resource, item.generation)
    result = [leaf("Bucket", item.bucket), leaf("Key", item.name), leaf("ETag", f'"{etag_of(item)}"')]
    root = Element("CompleteMultipartUploadResult", "", result)
    return xml_reply(root, headers=headers.version(item)[1:], namespace=MULTIPART)


def abort(call: Call) -> Reply:
    """Drop an upload with its parts."""
    upload = _upload(call)
    del call.store.multiparts[call.query["uploadId"]]
    call.committed(f"{upload.bucket}/{upload.name}")
    return NO_CONTENT


def _part(upload: Upload, number: int, etag: str) -> Content:
    data = upload.parts.get(number)
    if data is None or etag.strip('"') != etag_of_part(data):
        raise ApiError(400, f"Part {number} could not be found, or its ETag did not match.", "InvalidPart")
    return data


def _store(call: Call, data: Content) -> str:
    upload = _upload(call)
    number = integer(call.query.get("partNumber"), "partNumber")
    if not 1 <= number <= _MOST_PARTS:
        raise invalid(f"Invalid value for partNumber: it must be from 1 to {_MOST_PARTS}, got {number}.")
    if read_key(call.request.headers) != upload.key_sha256:
        text = "A part needs the encryption key that its upload began with."
        raise ApiError(400, text, "customerEncryptionKeyIsIncorrect")
    upload.parts[number] = data
    call.committed(f"{upload.bucket}/{upload.name}?partNumber={number}")
    return etag_of_part(data)


def _upload(call: Call) -> Upload:
    buckets.found(call)
    upload = call.store.multiparts.get(call.query["uploadId"])
    if upload is None or (upload.bucket, upload.name) != (call.names["bucket"], call.names["object"]):
        raise no_such_upload()
    return upload


def _names(call: Call, upload_id: str) -> list[Element]:
    return [leaf("Bucket", call.names["bucket"]), leaf("Key", call.names["object"]), leaf("UploadId", upload_id)]
