"""Objects of the XML API: read, write, delete, copy and compose them, and upload them in resumable sessions."""

from forbear_cloud.api import resumable
from forbear_cloud.api.downloads import media
from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import ApiError, HttpResponse, invalid
from forbear_cloud.operations import XML_PUT
from forbear_cloud.storage.conditions import check_etag
from forbear_cloud.storage.encryption import check_key, check_source_key
from forbear_cloud.storage.fields import integer, query_integer
from forbear_cloud.storage.model import StoredObject
from forbear_cloud.storage.resources import moment
from forbear_cloud.xml import headers
from forbear_cloud.xml.buckets import find_bucket
from forbear_cloud.xml.document import Element, leaf, node, read, xml_response
from forbear_cloud.xml.headers import copy_source, etag_of, quote_etag

_MAX_COMPONENTS = 32


def get(call: ApiCall) -> HttpResponse:
    """Read an object, for GET and HEAD; the server leaves out the body for HEAD.

    Respond 404 if it does not exist, and 412 or 304 if a precondition in the headers fails.
    """
    item = _item(call)
    headers.check_read(call.request.headers, item)
    response = media(item, call.request, etag_of(item))
    tagged = tuple((name, quote_etag(value) if name == "ETag" else value) for name, value in response.headers)
    return response._replace(headers=(*tagged, *headers.custom_metadata(item)))


def put(call: ApiCall) -> HttpResponse:
    """Write an object, whose data is the body, in one request.

    Respond 412 if a precondition in the headers fails, and 400 if the data does not have the hashes in the headers.
    """
    target, body = headers.target(call.request.headers, find_bucket(call), call.names["object"]), call.request.content
    md5 = call.request.headers.get("content-md5")
    if md5 is not None and md5 != body.md5:
        raise ApiError(400, "The Content-MD5 you specified did not match what we received.", "BadDigest")
    return HttpResponse(200, headers.version(resumable.commit(call, target, body, call.operation)))


def delete(call: ApiCall) -> HttpResponse:
    """Delete the live version of an object (a versioned bucket keeps it as noncurrent), or one generation for good.

    Respond 404 if it does not exist, and 412 if a precondition in the headers fails.
    """
    item = _item(call)
    headers.conditions(call.request.headers).check_write(item)
    call.store.delete_object(item, for_good="generation" in call.query)
    return call.commit_deletion(item.resource, item.generation)


def copy(call: ApiCall) -> HttpResponse:
    """Copy the object in the header x-goog-copy-source to the object of the path.

    The copy gets the metadata of its source, or that in the headers if x-goog-metadata-directive is REPLACE. Respond
    412 if a precondition on source or target fails, and 400 if the source has another encryption key than the headers
    (or only one of them has a key).
    """
    original, bucket = source_of(call), find_bucket(call)
    check_source_key(original, call.request.headers)
    target = headers.target(call.request.headers, bucket, call.names["object"])
    target.conditions.check_write(bucket.live(target.name))
    replaces = (headers.goog(call.request.headers, "metadata-directive") or "COPY").upper() == "REPLACE"
    fields = target.fields if replaces else original.fields
    item = call.store.copy(original, target.bucket, target.name, fields, target.acl, target.keys)
    call.commit(item.resource, item.generation)
    result = node(
        "CopyObjectResult", leaf("ETag", quote_etag(etag_of(item))), leaf("LastModified", moment(item.updated))
    )
    return xml_response(result, headers=headers.generation(item))


def compose(call: ApiCall) -> HttpResponse:
    """Join 1 to 32 objects of the bucket, which the body names, into the object of the path.

    The preconditions in the headers apply to the new object, those in the body to its components.
    """
    bucket = find_bucket(call)
    target = headers.target(call.request.headers, bucket, call.names["object"])
    components = list(read(call.request.body, "ComposeRequest").all("Component"))
    if not 1 <= len(components) <= _MAX_COMPONENTS:
        raise invalid(f"The number of components must be from 1 to {_MAX_COMPONENTS}, got {len(components)}.")
    sources = [_component(call, component) for component in components]
    target.conditions.check_write(bucket.live(target.name))
    for component in sources:
        check_key(component, call.request.headers)
    item = call.store.compose(sources, target.bucket, target.name, target.fields, target.acl, target.keys)
    call.commit(item.resource, item.generation)
    return HttpResponse(200, headers.version(item))


def source_of(call: ApiCall) -> StoredObject:
    """Return the object that the copy-source headers of a copy name; raise 404 if it does not exist.

    Raise 412 unless it meets the preconditions and entity tags in the copy-source headers.
    """
    request = call.request.headers
    bucket, name = copy_source(request) or ("", "")
    generation = headers.goog(request, "copy-source-generation")
    item = _version(call, bucket, name, None if generation is None else integer(generation, "copy-source-generation"))
    headers.conditions(request, "x-goog-copy-source-if-").check_write(item)
    etags = {f"if-{kind}": value for kind in ("match", "none-match")
             if (value := headers.goog(request, f"copy-source-if-{kind}")) is not None}  # fmt: skip
    try:
        check_etag(etags, etag_of(item))
    except ApiError as error:
        raise ApiError(412, error.message) from None
    return item


def start_session(call: ApiCall) -> HttpResponse:
    """Begin a resumable upload, and respond 201 with the URL of its session.

    Respond 400 unless the header x-goog-resumable is "start", and 412 if a precondition in the headers fails.
    """
    target = headers.target(call.request.headers, find_bucket(call), call.names["object"])
    if (headers.goog(call.request.headers, "resumable") or "").lower() != "start":
        raise invalid("Invalid value for x-goog-resumable: it must be start.")
    session = resumable.start(call, target)
    location = f"{call.base}{call.request.path}?upload_id={session.id}"
    return HttpResponse(201, (("Location", location), ("X-GUploader-UploadID", session.id)))


def continue_session(call: ApiCall) -> HttpResponse:
    """Handle a chunk or a status query of a resumable upload; its effect is recorded as one of `put`.

    Respond 200 once the object is made; until then as `resumable.incomplete` does: 308, with the range of the bytes
    received if there are any.
    """
    session = resumable.proceed(call, XML_PUT)
    if session.finished is None:
        return resumable.incomplete(call, session)
    return HttpResponse(200, headers.version(session.finished))


def _component(call: ApiCall, component: Element) -> StoredObject:
    """Return the object that a component of a composition names, in the generation that it names or else the live one.

    Raise 404 if it does not exist, and 412 if it does not have the generation in IfGenerationMatch.
    """
    name, generation = component.value("Name"), component.value("Generation")
    if not name:
        raise invalid("A Component must have a Name.")
    item = _version(call, call.names["bucket"], name, None if generation is None else integer(generation, "Generation"))
    wanted = component.value("IfGenerationMatch")
    if wanted is not None:
        headers.conditions({"x-goog-if-generation-match": wanted}).check_write(item)
    return item


def _item(call: ApiCall) -> StoredObject:
    """Return the object of the path, in the generation of the query or else the live one; raise 404 without one."""
    return _version(call, call.names["bucket"], call.names["object"], query_integer(call.query, "generation"))


def _version(call: ApiCall, bucket: str, name: str, generation: int | None) -> StoredObject:
    """Return a version of an object, the live one for None; raise 404 if it or the bucket does not exist."""
    item = find_bucket(call, bucket).find(name, generation)
    if item is None:
        raise ApiError(404, "The specified key does not exist.")
    return item
