"""Compose, copy, rewrite and move: create objects from stored ones, without sending their bytes."""

from forbear_cloud.api.objects import commit_object, resource_of
from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import HttpResponse, JsonObject, invalid, json_response, required
from forbear_cloud.storage.conditions import read_conditions
from forbear_cloud.storage.encryption import check_key, check_source_key, keys_for
from forbear_cloud.storage.fields import integer, items, mapping, query_integer, text
from forbear_cloud.storage.model import ObjectKeys, StoredObject
from forbear_cloud.storage.retention import check_unprotected
from forbear_cloud.storage.sessions import Rewrite
from forbear_cloud.storage.writable import check_object_name, find_predefined_acl, merge_patch, object_fields

_MAX_SOURCES = 32
_MEBIBYTE = 1_048_576
_HOLDS = ("temporaryHold", "eventBasedHold", "retention")
"""The fields that protect one object, and are not copied with it."""


def compose(call: ApiCall) -> HttpResponse:
    """Join up to 32 objects of a bucket into the object of the path, and respond with its resource.

    The conditions in the query apply to the destination, ifGenerationMatch in the body to its source. The key in the
    headers, if any, must be that of every source, and becomes that of the new object.
    """
    bucket, name, body = call.bucket(), call.names["object"], call.body()
    parts = items(body, "sourceObjects")
    if not parts:
        raise required("sourceObjects")
    if len(parts) > _MAX_SOURCES:
        raise invalid(f"The number of source components provided ({len(parts)}) exceeds the maximum ({_MAX_SOURCES}).")
    sources = list[StoredObject]()
    for part in parts:
        generation = part.get("generation")
        number = None if generation is None else integer(generation, "generation")
        source = call.store.object(bucket.name, text(part, "name"), number)
        wanted = mapping(part, "objectPreconditions").get("ifGenerationMatch")
        if wanted is not None:
            read_conditions({"ifGenerationMatch": str(integer(wanted, "ifGenerationMatch"))}).check_write(source)
        check_key(source, call.request.headers)
        sources.append(source)
    call.conditions().check_write(bucket.live(name))
    fields = merge_patch({}, object_fields(mapping(body, "destination")))
    acl = find_predefined_acl(call.query, "destinationPredefinedAcl", bucket.project)
    keys = keys_for(bucket, call.request.headers, call.query.get("kmsKeyName"))
    return commit_object(call, call.store.compose(sources, bucket.name, name, fields, acl, keys))


def copy(call: ApiCall) -> HttpResponse:
    """Copy the source of the path to the destination of the path in one call; respond with the resource of the copy."""
    return commit_object(call, _copy(call, _source(call)))


def rewrite(call: ApiCall) -> HttpResponse:
    """Copy an object, in several calls if the query's `maxBytesRewrittenPerCall` is smaller than the object.

    Each call but the last responds with a token, with which the next one continues. The last one creates the copy and
    responds with its resource. Each call needs the source's key, and the same keys for the copy.
    """
    limit = query_integer(call.query, "maxBytesRewrittenPerCall")
    if limit is not None and (limit <= 0 or limit % _MEBIBYTE):
        raise invalid(f"Invalid value for maxBytesRewrittenPerCall: {limit}. It must be a multiple of {_MEBIBYTE}.")
    source = _source(call)
    check_source_key(source, call.request.headers)
    _check_destination(call)
    bucket, name = call.names["destinationBucket"], call.names["destinationObject"]
    plan = source.resource, source.generation, bucket, name, _keys(call)
    token = call.query.get("rewriteToken")
    so_far = 0
    if token:
        begun = call.store.rewrites.get(token)
        if begun is None or begun.plan != plan:
            raise invalid("Invalid value for rewriteToken: the rewrite, its source or its keys are others.")
        so_far = begun.copied
    size = len(source.content)
    copied = size if limit is None else min(so_far + limit, size)
    progress: JsonObject = {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": str(copied),
        "objectSize": str(size),
        "done": copied == size,
    }
    if copied < size:
        # Every token stays valid, so that a call whose response was lost can be repeated.
        token = f"rewrite-{call.store.next_id()}"
        call.store.keep_rewrite(token, Rewrite(plan, copied))
        return json_response({**progress, "rewriteToken": token})
    item = _copy(call, source)
    call.commit(item.resource, item.generation)
    return json_response({**progress, "resource": resource_of(call, item)})


def move(call: ApiCall) -> HttpResponse:
    """Rename an object within its bucket, in one change that deletes the source and replaces an object of the new name.

    The object gets a new generation. Respond 403 while a hold or a retention protects the source, and 412 if a
    condition fails.
    """
    bucket, name = call.bucket(), call.names["destinationObject"]
    source = call.store.object(bucket.name, call.names["object"])
    read_conditions(call.query, "ifSource").check_write(source)
    check_unprotected(bucket, source, call.store.now())
    check_object_name(name)
    if name == source.name:
        raise invalid("The source and the destination of a move must differ.")
    call.conditions().check_write(bucket.live(name))
    # Unlike a copy, a move takes no more memory, so none is claimed for it.
    item = call.store.put(
        bucket.name,
        name,
        source.content,
        source.fields,
        acl=source.acl,
        components=source.components,
        keys=source.keys,
    )
    call.store.delete_object(source, for_good=not bucket.versioned)
    return commit_object(call, item)


def _source(call: ApiCall) -> StoredObject:
    """Return the source object of the path: the `sourceGeneration` in the query, or without one the live version.

    Raise 404 if it does not exist, and 412 unless it meets the query's ifSource conditions.
    """
    generation = query_integer(call.query, "sourceGeneration")
    source = call.store.object(call.names["bucket"], call.names["object"], generation)
    read_conditions(call.query, "ifSource").check_write(source)
    return source


def _check_destination(call: ApiCall) -> None:
    """Raise 400 for a bad name of the destination, and 412 unless its live version meets the query's conditions."""
    name = call.names["destinationObject"]
    check_object_name(name)
    call.conditions().check_write(call.store.bucket(call.names["destinationBucket"]).live(name))


def _copy(call: ApiCall, source: StoredObject) -> StoredObject:
    """Copy the source to the destination of the path, after checking its key and the destination; return the copy.

    Metadata in the body replaces all metadata of the source. Without a body the copy gets the source's, except holds
    and retention.
    """
    check_source_key(source, call.request.headers)
    _check_destination(call)
    bucket = call.store.bucket(call.names["destinationBucket"])
    body = call.body()
    if body:
        fields = merge_patch({}, object_fields(body))
    else:
        fields = {name: value for name, value in source.fields.items() if name not in _HOLDS}
    acl = find_predefined_acl(call.query, "destinationPredefinedAcl", bucket.project)
    return call.store.copy(source, bucket.name, call.names["destinationObject"], fields, acl, _keys(call))


def _keys(call: ApiCall) -> ObjectKeys:
    """Return the keys that the copy at the destination of the path gets."""
    bucket = call.store.bucket(call.names["destinationBucket"])
    return keys_for(bucket, call.request.headers, call.query.get("destinationKmsKeyName"))
