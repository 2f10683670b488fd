"""objects.compose, copy, rewrite and move: new objects out of old ones; the bytes never leave the cloud."""

from forbear.testing.cloud.api.acls import predefined_acl
from forbear.testing.cloud.api.objects import object_reply, resource_of
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.content import joined
from forbear.testing.cloud.http.errors import invalid, required
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.conditions import read_conditions
from forbear.testing.cloud.storage.encryption import check_key, check_source_key, read_key
from forbear.testing.cloud.storage.fields import integer, items, mapping, query_integer, text
from forbear.testing.cloud.storage.model import StoredObject
from forbear.testing.cloud.storage.retention import check_unprotected
from forbear.testing.cloud.storage.store import Rewrite, check_object_name
from forbear.testing.cloud.storage.writable import merged, object_fields

_MOST_SOURCES = 32
_MEBIBYTE = 1_048_576
_HOLDS = ("temporaryHold", "eventBasedHold", "retention")
"""The fields that protect one object, and not its copies."""


def compose(call: Call) -> Reply:
    """Join up to 32 objects of a bucket into one; only the destination's conditions guard the destination."""
    bucket, name, body = call.bucket(), call.names["object"], call.body()
    parts = items(body, "sourceObjects")
    if not parts:
        raise required("sourceObjects")
    if len(parts) > _MOST_SOURCES:
        raise invalid(f"The number of source components provided ({len(parts)}) exceeds the maximum ({_MOST_SOURCES}).")
    sources = list[StoredObject]()
    for part in parts:
        generation = part.get("generation")
        number = None if generation is None else integer(generation, "generation")
        source = call.store.object(bucket.name, text(part, "name"), number)
        conditions = mapping(part, "objectPreconditions")
        wanted = conditions.get("ifGenerationMatch")
        if wanted is not None:
            read_conditions({"ifGenerationMatch": str(integer(wanted, "ifGenerationMatch"))}).check_write(source)
        check_key(source, call.request.headers)
        sources.append(source)
    call.conditions().check_write(bucket.live(name))
    fields = merged({}, object_fields(mapping(body, "destination")))
    components = sum(source.components or 1 for source in sources)
    acl = predefined_acl(call.query, "destinationPredefinedAcl", bucket.project)
    call.store.claim(source.content for source in sources)
    data = joined(source.content for source in sources)
    key = read_key(call.request.headers)
    item = call.store.put(bucket.name, name, data, fields, acl=acl, components=components, key_sha256=key)
    call.committed(item.resource, item.generation)
    return object_reply(call, item)


def copy(call: Call) -> Reply:
    """Copy an object in one call."""
    return object_reply(call, _write(call, _source(call, query_integer(call.query, "sourceGeneration"))))


def rewrite(call: Call) -> Reply:
    """Copy an object, in several calls when `maxBytesRewrittenPerCall` says so; the token carries it on."""
    most = query_integer(call.query, "maxBytesRewrittenPerCall")
    if most is not None and (most <= 0 or most % _MEBIBYTE):
        raise invalid(f"Invalid value for maxBytesRewrittenPerCall: {most}. It must be a multiple of {_MEBIBYTE}.")
    source = _source(call, query_integer(call.query, "sourceGeneration"))
    _check_destination(call)
    plan = (source.resource, source.generation, call.names["destinationBucket"], call.names["destinationObject"])
    token = call.query.get("rewriteToken")
    so_far = 0
    if token:
        begun = call.store.rewrites.get(token)
        if begun is None or begun.plan != plan:
            raise invalid("Invalid value for rewriteToken: it does not belong to this rewrite, or the source changed.")
        so_far = begun.copied
    size = len(source.content)
    copied = size if most is None else min(so_far + most, size)
    answer: JsonObject = {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": str(copied),
        "objectSize": str(size),
        "done": copied == size,
    }
    if copied < size:
        # Every token stays valid, so that a call whose reply was lost can be repeated.
        token = f"rewrite-{call.store.next_id()}"
        call.store.keep_rewrite(token, Rewrite(plan, copied))
        return json_reply({**answer, "rewriteToken": token})
    item = _write(call, source)
    return json_reply({**answer, "resource": resource_of(call, item)})


def move(call: Call) -> Reply:
    """Rename an object within its bucket: one change, after which the source is gone."""
    bucket, name = call.bucket(), call.names["destinationObject"]
    source = _source(call, None)
    check_unprotected(bucket, source, call.store.now())
    check_object_name(name)
    if name == source.name:
        raise invalid("The source and the destination of a move must differ.")
    call.conditions().check_write(bucket.live(name))
    item = call.store.put(
        bucket.name,
        name,
        source.content,
        source.fields,
        acl=source.acl,
        components=source.components,
        key_sha256=source.key_sha256,
    )
    call.store.delete_object(source, for_good=not bucket.versioned)
    call.committed(item.resource, item.generation)
    return object_reply(call, item)


def _source(call: Call, generation: int | None) -> StoredObject:
    source = call.store.object(call.names["bucket"], call.names["object"], generation)
    read_conditions(call.query, "ifSource").check_write(source)
    return source


def _check_destination(call: Call) -> None:
    name = call.names["destinationObject"]
    check_object_name(name)
    call.conditions().check_write(call.store.bucket(call.names["destinationBucket"]).live(name))


def _write(call: Call, source: StoredObject) -> StoredObject:
    """Make the copy; metadata in the request replaces the source's as a whole."""
    check_source_key(source, call.request.headers)
    _check_destination(call)
    bucket = call.store.bucket(call.names["destinationBucket"])
    body = call.body()
    fields = merged({}, object_fields(body)) if body else {**source.fields}
    for hold in _HOLDS if not body else ():
        fields.pop(hold, None)
    acl = predefined_acl(call.query, "destinationPredefinedAcl", bucket.project)
    call.store.claim([source.content])
    item = call.store.put(
        bucket.name,
        call.names["destinationObject"],
        source.content,
        fields,
        acl=acl,
        components=source.components,
        key_sha256=read_key(call.request.headers),
    )
    call.committed(item.resource, item.generation)
    return item
