"""Objects: GET, HEAD, PUT, DELETE, copies and compositions, each under the conditions in its headers."""

from dataclasses import replace

from forbear.testing.cloud.api import resumable
from forbear.testing.cloud.api.downloads import media
from forbear.testing.cloud.api.resumable import commit
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.content import joined
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import NO_CONTENT, Reply
from forbear.testing.cloud.storage.conditions import check_etag
from forbear.testing.cloud.storage.encryption import check_key, check_source_key, read_key
from forbear.testing.cloud.storage.fields import integer, query_integer
from forbear.testing.cloud.storage.model import StoredObject
from forbear.testing.cloud.storage.resources import moment
from forbear.testing.cloud.storage.store import check_object_name
from forbear.testing.cloud.xml import buckets, headers
from forbear.testing.cloud.xml.document import Element, leaf, no_such_bucket, read, xml_reply
from forbear.testing.cloud.xml.find import source
from forbear.testing.cloud.xml.headers import etag_of

_MOST_COMPONENTS = 32


def get(call: Call) -> Reply:
    """Read an object; for HEAD only the headers are sent."""
    item = _found(call)
    headers.check_read(call.request.headers, item)
    reply = media(item, call.request, etag_of(item))
    quoted = tuple((name, f'"{value}"' if name == "ETag" else value) for name, value in reply.headers)
    return replace(reply, headers=(*quoted, *headers.custom_metadata(item)))


def put(call: Call) -> Reply:
    """Write an object in one request."""
    given, body, name = call.request.headers, call.request.content, call.names["object"]
    bucket = buckets.found(call)
    check_object_name(name)
    md5 = given.get("content-md5")
    if md5 is not None and md5 != body.md5:
        raise ApiError(400, "The Content-MD5 you specified did not match what we received.", "BadDigest")
    conditions, acl = headers.conditions(given), headers.acl(given, bucket.project)
    item = commit(
        call, bucket.name, name, body, headers.fields(given), conditions, acl, call.operation, read_key(given)
    )
    return Reply(200, headers.version(item))


def delete(call: Call) -> Reply:
    """Delete the live version (in a versioned bucket it becomes noncurrent), or one generation for good."""
    item = _found(call)
    headers.conditions(call.request.headers).check_write(item)
    call.store.delete_object(item, for_good="generation" in call.query)
    call.committed(item.resource, item.generation)
    return NO_CONTENT


def copy(call: Call) -> Reply:
    """Copy an object; its metadata comes along, or is replaced by that in the headers."""
    given, name, bucket = call.request.headers, call.names["object"], buckets.found(call)
    original = copied(call)
    check_source_key(original, given)
    check_object_name(name)
    headers.conditions(given).check_write(bucket.live(name))
    replaces = (headers.goog(given, "metadata-directive") or "COPY").upper() == "REPLACE"
    fields = headers.fields(given) if replaces else original.fields
    acl = headers.acl(given, bucket.project)
    call.store.claim([original.content])
    key, count = read_key(given), original.components
    item = call.store.put(bucket.name, name, original.content, fields, acl=acl, components=count, key_sha256=key)
    call.committed(item.resource, item.generation)
    result = [leaf("ETag", f'"{etag_of(item)}"'), leaf("LastModified", moment(item.updated))]
    return xml_reply(Element("CopyObjectResult", "", result), headers=headers.version(item)[1:])


def compose(call: Call) -> Reply:
    """Join up to 32 objects of the bucket; the conditions of the components do not guard the result."""
    given, name, bucket = call.request.headers, call.names["object"], buckets.found(call)
    check_object_name(name)
    components = list(read(call.request.body, "ComposeRequest").all("Component"))
    if not 1 <= len(components) <= _MOST_COMPONENTS:
        raise invalid(f"The number of components must be from 1 to {_MOST_COMPONENTS}, got {len(components)}.")
    sources = [_component(call, component) for component in components]
    headers.conditions(given).check_write(bucket.live(name))
    call.store.claim(each.content for each in sources)
    data, count = joined(each.content for each in sources), sum(each.components or 1 for each in sources)
    acl = headers.acl(given, bucket.project)
    for each in sources:
        check_key(each, given)
    key = read_key(given)
    item = call.store.put(bucket.name, name, data, headers.fields(given), acl=acl, components=count, key_sha256=key)
    call.committed(item.resource, item.generation)
    return Reply(200, headers.version(item))


def copied(call: Call) -> StoredObject:
    """The source of a copy, if it is as the headers demand."""
    given = call.request.headers
    bucket, name = source(given) or ("", "")
    generation = headers.goog(given, "copy-source-generation")
    item = _version(call, bucket, name, None if generation is None else integer(generation, "copy-source-generation"))
    headers.conditions(given, "x-goog-copy-source-if-").check_write(item)
    etags = {f"if-{kind}": value for kind in ("match", "none-match")
             if (value := headers.goog(given, f"copy-source-if-{kind}")) is not None}  # fmt: skip
    try:
        check_etag(etags, etag_of(item))
    except ApiError as error:
        raise ApiError(412, error.message) from None
    return item


def _component(call: Call, component: Element) -> StoredObject:
    name, generation = component.value("Name"), component.value("Generation")
    if not name:
        raise invalid("A Component has a Name.")
    item = _version(call, call.names["bucket"], name, None if generation is None else integer(generation, "Generation"))
    wanted = component.value("IfGenerationMatch")
    if wanted is not None:
        headers.conditions({"x-goog-if-generation-match": wanted}).check_write(item)
    return item


def _found(call: Call) -> StoredObject:
    return _version(call, call.names["bucket"], call.names["object"], query_integer(call.query, "generation"))


def _version(call: Call, bucket: str, name: str, generation: int | None) -> StoredObject:
    home = call.store.buckets.get(bucket)
    if home is None:
        raise no_such_bucket()
    item = home.find(name, generation)
    if item is None:
        raise ApiError(404, "The specified key does not exist.")
    return item


UPLOAD = "xml.object.put"
"""The effect is that of an upload in one request."""


def start_session(call: Call) -> Reply:
    """Begin a session, whose URI is in the Location of the reply."""
    given, name, bucket = call.request.headers, call.names["object"], buckets.found(call)
    if (headers.goog(given, "resumable") or "").lower() != "start":
        raise invalid("Invalid value for x-goog-resumable: it must be start.")
    check_object_name(name)
    acl = headers.acl(given, bucket.project)
    session = resumable.start(call, bucket.name, name, headers.fields(given), headers.conditions(given), acl)
    location = f"{call.base}{call.request.path}?upload_id={session.id}"
    return Reply(201, (("Location", location), ("X-GUploader-UploadID", session.id)))


def continue_session(call: Call) -> Reply:
    """Take a chunk or a status query."""
    session = resumable.proceed(call, UPLOAD)
    if session.finished is None:
        return resumable.incomplete(call, session)
    return Reply(200, headers.version(session.finished))


def cancel_session(call: Call) -> Reply:
    """Forget a session."""
    return resumable.cancel(call)
