"""Buckets of the XML API: list all, list the objects of one, create, check and delete it."""

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import ApiError, Headers, HttpResponse, JsonObject
from forbear_cloud.storage.fields import page_token
from forbear_cloud.storage.listing import ObjectPage, list_objects
from forbear_cloud.storage.model import Bucket
from forbear_cloud.storage.resources import moment
from forbear_cloud.storage.writable import check_bucket_name
from forbear_cloud.xml import headers
from forbear_cloud.xml.document import Element, leaf, no_such_bucket, node, read, xml_response
from forbear_cloud.xml.headers import etag_of, quote_etag

_LAST_GENERATION = 2**63 - 1
"""A number greater than every generation."""


def list_buckets(call: ApiCall) -> HttpResponse:
    """List the buckets of the project in the header x-goog-project-id, or of every project without it, by name."""
    project = headers.goog(call.request.headers, "project-id")
    shown = [
        node("Bucket", leaf("Name", bucket.name), leaf("CreationDate", moment(bucket.created)))
        for bucket in sorted(call.store.buckets.values(), key=lambda bucket: bucket.name)
        if project in {None, bucket.project}
    ]
    owner = node("Owner", leaf("ID", "forbear-cloud"))
    return xml_response(node("ListAllMyBucketsResult", owner, node("Buckets", *shown)))


def get(call: ApiCall) -> HttpResponse:
    """List one page of the live objects of a bucket by name, with names that have a delimiter grouped to prefixes.

    In the query, `versions` lists noncurrent versions, too, and `list-type=2` selects version 2 of the format.
    """
    query, bucket = call.query, find_bucket(call)
    second = query.get("list-type") == "2"
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("start-after" if second else "marker", "")
    arguments = {"prefix": prefix, "delimiter": delimiter, "maxResults": query.get("max-keys", "1000")}
    if second and query.get("continuation-token"):
        arguments["pageToken"] = query["continuation-token"]
    elif after:
        folded = delimiter and after.startswith(prefix) and after.endswith(delimiter) and after != prefix
        arguments["pageToken"] = page_token(f"p{after}" if folded else f"{_LAST_GENERATION}:{after}")
    page = list_objects(bucket, arguments, versions="versions" in query)
    return xml_response(
        node(
            "ListBucketResult",
            leaf("Name", bucket.name),
            leaf("Prefix", prefix),
            *((leaf("Delimiter", delimiter),) if delimiter else ()),
            leaf("KeyCount", len(page.items) + len(page.prefixes)) if second else leaf("Marker", after),
            leaf("IsTruncated", "false" if page.token is None else "true"),
            *_next(page, second=second),
            *_entries(page),
        )
    )


def _next(page: ObjectPage, *, second: bool) -> list[Element]:
    """Return a list with the element that names the next page; empty on the last page.

    Version 2 of the format (`second`) has a token in it, version 1 the last name on the page.
    """
    if page.token is None:
        return []
    last = max([item.name for item in page.items] + page.prefixes, default="")
    return [leaf("NextContinuationToken", page.token) if second else leaf("NextMarker", last)]


def head(call: ApiCall) -> HttpResponse:
    """Check that a bucket exists: respond 200 with its metageneration, or 404.

    Respond 412 or 304 if a precondition in the headers fails.
    """
    bucket = find_bucket(call)
    headers.conditions(call.request.headers).check_read(bucket)
    return HttpResponse(200, (("Content-Type", "application/xml; charset=UTF-8"), *_version(bucket)))


def put(call: ApiCall) -> HttpResponse:
    """Create the bucket of the path, with the location and storage class in the body.

    Its project is that in the header x-goog-project-id, else "p". Respond 409 if the bucket exists, and 400 for an
    invalid name.
    """
    name = call.names["bucket"]
    check_bucket_name(name)
    fields: JsonObject = {}
    if call.request.body.strip():
        configuration = read(call.request.body, "CreateBucketConfiguration")
        for tag, field in (("LocationConstraint", "location"), ("StorageClass", "storageClass")):
            if value := configuration.value(tag):
                fields[field] = value
    project = headers.goog(call.request.headers, "project-id") or "p"
    acl = headers.acl(call.request.headers, project)
    if name in call.store.buckets:
        raise ApiError(409, "You already own this bucket. Please select another name.", "BucketAlreadyOwnedByYou")
    bucket = call.store.create_bucket(name, project, fields)
    bucket.acl = acl or bucket.acl
    call.commit(name, bucket.generation)
    return HttpResponse(200, _version(bucket))


def delete(call: ApiCall) -> HttpResponse:
    """Delete the bucket of the path; respond 409 if it is not empty, and 412 if a precondition in the headers fails."""
    bucket = find_bucket(call)
    headers.conditions(call.request.headers).check_write(bucket)
    if bucket.objects:
        raise ApiError(409, "The bucket you tried to delete is not empty.", "BucketNotEmpty")
    call.store.delete_bucket(bucket)
    return call.commit_deletion(bucket.name, bucket.generation)


def find_bucket(call: ApiCall, name: str | None = None) -> Bucket:
    """Return the bucket with this name, by default (None) the one of the path; raise 404 if it does not exist."""
    bucket = call.store.buckets.get(call.names["bucket"] if name is None else name)
    if bucket is None:
        raise no_such_bucket()
    return bucket


def _version(bucket: Bucket) -> Headers:
    return (("x-goog-metageneration", str(bucket.metageneration)),)


def _entries(page: ObjectPage) -> list[Element]:
    """Return the objects on a page of a listing as elements, and then its common prefixes."""
    contents = [
        node(
            "Contents",
            leaf("Key", item.name),
            leaf("Generation", item.generation),
            leaf("MetaGeneration", item.metageneration),
            leaf("LastModified", moment(item.updated)),
            leaf("ETag", quote_etag(etag_of(item))),
            leaf("Size", len(item.content)),
        )
        for item in page.items
    ]
    return contents + [node("CommonPrefixes", leaf("Prefix", prefix)) for prefix in page.prefixes]
