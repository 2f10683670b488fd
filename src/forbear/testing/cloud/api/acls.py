"""Access control entries of buckets, of objects and for objects to come: the same six operations for all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.http.errors import ApiError, invalid, not_found
from forbear.testing.cloud.http.messages import NO_CONTENT, JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.fields import text
from forbear.testing.cloud.storage.model import Bucket, StoredObject, nested
from forbear.testing.cloud.storage.resources import acl_resource, listing


@dataclass(frozen=True, slots=True)
class _List:
    """One access control list, and the thing whose metadata it belongs to."""

    kind: str
    owner: Bucket | StoredObject
    acl: dict[str, str]

    def entry(self, entity: str) -> JsonObject:
        role = self.acl[entity]
        if isinstance(self.owner, StoredObject):
            item = self.owner
            return acl_resource(self.kind, entity, role, item.metageneration, item.bucket, item.name, item.generation)
        return acl_resource(self.kind, entity, role, self.owner.metageneration, self.owner.name)

    def entries(self) -> list[JsonObject]:
        return [self.entry(entity) for entity in self.acl]


def _of_bucket(call: Call) -> _List:
    bucket = _open(call.bucket())
    return _List("bucketAccessControl", bucket, bucket.acl)


def _of_default(call: Call) -> _List:
    bucket = _open(call.bucket())
    return _List("objectAccessControl", bucket, bucket.default_acl)


def _of_object(call: Call) -> _List:
    _open(call.bucket())
    item = call.item()
    return _List("objectAccessControl", item, item.acl)


def _open(bucket: Bucket) -> Bucket:
    uniform = nested(nested(bucket.fields, "iamConfiguration"), "uniformBucketLevelAccess")
    if uniform.get("enabled") is True:
        raise ApiError(400, "Cannot use ACL API when uniform bucket-level access is enabled.", "invalid")
    return bucket


def _handlers(find: Callable[[Call], _List]) -> Mapping[str, Handler]:
    def list_(call: Call) -> Reply:
        found = find(call)
        return json_reply(listing(f"{found.kind}s", found.entries()))

    def get(call: Call) -> Reply:
        found = find(call)
        return json_reply(found.entry(_entity(call, found)))

    def insert(call: Call) -> Reply:
        found, body = find(call), call.body()
        return _write(call, found, text(body, "entity"), text(body, "role"))

    def write(call: Call) -> Reply:
        found = find(call)
        return _write(call, found, _entity(call, found), text(call.body(), "role"))

    def delete(call: Call) -> Reply:
        found = find(call)
        entity = _entity(call, found)
        del found.acl[entity]
        _note(call, found, entity)
        return NO_CONTENT

    return {"list": list_, "get": get, "insert": insert, "patch": write, "update": write, "delete": delete}


def _entity(call: Call, found: _List) -> str:
    entity = call.names["entity"]
    if entity not in found.acl:
        raise not_found(f"The access control entry for {entity}")
    return entity


def _write(call: Call, found: _List, entity: str, role: str) -> Reply:
    found.acl[entity] = role
    _note(call, found, entity)
    return json_reply(found.entry(entity))


def _note(call: Call, found: _List, entity: str) -> None:
    call.store.touch(found.owner)
    place = found.owner.resource if isinstance(found.owner, StoredObject) else found.owner.name
    call.committed(f"{place}/acl/{entity}", found.owner.generation)


BUCKET = _handlers(_of_bucket)
DEFAULT_OBJECT = _handlers(_of_default)
OBJECT = _handlers(_of_object)


_PUBLIC: Mapping[str, Mapping[str, str]] = {
    "private": {},
    "publicRead": {"allUsers": "READER"},
    "publicReadWrite": {"allUsers": "WRITER"},
    "authenticatedRead": {"allAuthenticatedUsers": "READER"},
    "bucketOwnerRead": {"project-owners-{project}": "READER"},
    "bucketOwnerFullControl": {"project-owners-{project}": "OWNER"},
    "projectPrivate": {"project-editors-{project}": "OWNER", "project-viewers-{project}": "READER"},
}


def predefined_acl(query: Mapping[str, str], name: str, project: str) -> dict[str, str] | None:
    """The list that the query parameter `name` asks for, None when it is absent, 400 when it is not one."""
    word = query.get(name)
    if word is None:
        return None
    if word not in _PUBLIC:
        raise invalid(f"Invalid value for {name}: '{word}'. It must be one of {', '.join(_PUBLIC)}.")
    grants = {f"project-owners-{project}": "OWNER"}
    for entity, role in _PUBLIC[word].items():
        grants.setdefault(entity.format(project=project), role)
    return grants
