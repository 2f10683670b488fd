"""The service and its buckets: list buckets, list objects, create, check and delete."""

from forbear.testing.cloud.api.buckets import check_bucket_name
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import NO_CONTENT, JsonObject, Reply
from forbear.testing.cloud.storage.fields import token_after
from forbear.testing.cloud.storage.listing import Listed, list_objects
from forbear.testing.cloud.storage.model import Bucket
from forbear.testing.cloud.storage.resources import moment
from forbear.testing.cloud.xml import headers
from forbear.testing.cloud.xml.document import Element, leaf, no_such_bucket, read, xml_reply
from forbear.testing.cloud.xml.headers import etag_of

_LATEST = 2**63 - 1
"""After every generation."""


def list_buckets(call: Call) -> Reply:
    """List the buckets of the project that the headers name, or of all."""
    project = headers.goog(call.request.headers, "project-id")
    buckets = sorted(call.store.buckets.values(), key=lambda bucket: bucket.name)
    shown = [
        Element("Bucket", "", [leaf("Name", bucket.name), leaf("CreationDate", moment(bucket.created))])
        for bucket in buckets
        if project in {None, bucket.project}
    ]
    owner = Element("Owner", "", [leaf("ID", "forbear-cloud")])
    return xml_reply(Element("ListAllMyBucketsResult", "", [owner, Element("Buckets", "", shown)]))


def get(call: Call) -> Reply:
    """List the objects of a bucket by name, folded at a delimiter; `list-type=2` has other names for the pages."""
    query, store = call.query, found(call)
    second = query.get("list-type") == "2"
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("start-after" if second else "marker", "")
    asked = {"prefix": prefix, "delimiter": delimiter, "maxResults": query.get("max-keys", "1000")}
    if second and query.get("continuation-token"):
        asked["pageToken"] = query["continuation-token"]
    elif after:
        folded = delimiter and after.startswith(prefix) and after.endswith(delimiter) and after != prefix
        asked["pageToken"] = token_after(f"p{after}" if folded else f"{_LATEST}:{after}")
    listed = list_objects(store, asked, versions="versions" in query)
    last = max([item.name for item in listed.items] + listed.prefixes, default="")
    root = Element("ListBucketResult", "", [leaf("Name", store.name), leaf("Prefix", prefix)])
    if delimiter:
        root.children.append(leaf("Delimiter", delimiter))
    if second:
        root.children.append(leaf("KeyCount", len(listed.items) + len(listed.prefixes)))
    else:
        root.children.append(leaf("Marker", after))
    root.children.append(leaf("IsTruncated", "false" if listed.token is None else "true"))
    if listed.token is not None:
        root.children.append(leaf("NextContinuationToken", listed.token) if second else leaf("NextMarker", last))
    return xml_reply(Element(root.name, "", [*root.children, *_entries(listed)]))


def head(call: Call) -> Reply:
    """Check that a bucket is there."""
    bucket = found(call)
    headers.conditions(call.request.headers).check_read(bucket)
    return Reply(200, (("Content-Type", "application/xml; charset=UTF-8"), *_version(bucket)))


def put(call: Call) -> Reply:
    """Create a bucket; 409 when it is there."""
    name, given = call.names["bucket"], call.request.headers
    check_bucket_name(name)
    fields: JsonObject = {}
    if call.request.body.strip():
        wanted = read(call.request.body, "CreateBucketConfiguration")
        for tag, field in (("LocationConstraint", "location"), ("StorageClass", "storageClass")):
            if value := wanted.value(tag):
                fields[field] = value
    project = headers.goog(given, "project-id") or "p"
    acl = headers.acl(given, project)
    if name in call.store.buckets:
        raise ApiError(409, "You already own this bucket. Please select another name.", "BucketAlreadyOwnedByYou")
    bucket = call.store.create_bucket(name, project, fields)
    bucket.acl = acl or bucket.acl
    call.committed(name, bucket.generation)
    return Reply(200, _version(bucket))


def delete(call: Call) -> Reply:
    """Delete an empty bucket."""
    bucket = found(call)
    headers.conditions(call.request.headers).check_write(bucket)
    if bucket.objects:
        raise ApiError(409, "The bucket you tried to delete is not empty.", "BucketNotEmpty")
    call.store.delete_bucket(bucket)
    call.committed(bucket.name, bucket.generation)
    return NO_CONTENT


def found(call: Call) -> Bucket:
    """The bucket that the request names."""
    bucket = call.store.buckets.get(call.names["bucket"])
    if bucket is None:
        raise no_such_bucket()
    return bucket


def _version(bucket: Bucket) -> tuple[tuple[str, str], ...]:
    return (("x-goog-metageneration", str(bucket.metageneration)),)


def _entries(listed: Listed) -> list[Element]:
    contents = [
        Element("Contents", "", [
            leaf("Key", item.name),
            leaf("Generation", item.generation),
            leaf("MetaGeneration", item.metageneration),
            leaf("LastModified", moment(item.updated)),
            leaf("ETag", f'"{etag_of(item)}"'),
            leaf("Size", len(item.content)),
        ])
        for item in listed.items
    ]  # fmt: skip
    return contents + [Element("CommonPrefixes", "", [leaf("Prefix", prefix)]) for prefix in listed.prefixes]
