"""Access control lists of buckets, of objects and for new objects: the same six operations for each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forbear.testing.cloud.call import ApiCall, Handler
from forbear.testing.cloud.http.messages import NO_CONTENT, ApiError, HttpResponse, json_response, not_found
from forbear.testing.cloud.storage.fields import text
from forbear.testing.cloud.storage.model import Bucket, StoredObject, nested
from forbear.testing.cloud.storage.resources import acl_resource, acl_resources, listing


@dataclass(frozen=True, slots=True)
class _AccessList:
    """An access control list (entity to role), and the bucket or object that it belongs to."""

    kind: str
    owner: Bucket | StoredObject
    acl: dict[str, str]

    def response(self, entity: str) -> HttpResponse:
        return json_response(acl_resource(self.kind, self.owner, entity, self.acl[entity]))


def _of_bucket(call: ApiCall) -> _AccessList:
    bucket = _bucket(call)
    return _AccessList("bucketAccessControl", bucket, bucket.acl)


def _for_new_objects(call: ApiCall) -> _AccessList:
    bucket = _bucket(call)
    return _AccessList("objectAccessControl", bucket, bucket.default_acl)


def _of_object(call: ApiCall) -> _AccessList:
    _bucket(call)
    item = call.item()
    return _AccessList("objectAccessControl", item, item.acl)


def _bucket(call: ApiCall) -> Bucket:
    """Return the bucket of the path; raise 400 if its uniform bucket-level access turns access lists off."""
    bucket = call.bucket()
    uniform = nested(nested(bucket.fields, "iamConfiguration"), "uniformBucketLevelAccess")
    if uniform.get("enabled") is True:
        raise ApiError(400, "Cannot use ACL API when uniform bucket-level access is enabled.", "invalid")
    return bucket


def _handlers(find: Callable[[ApiCall], _AccessList]) -> Mapping[str, Handler]:
    """Return the handlers, by method name, for the access control lists that `find` returns."""

    def list_(call: ApiCall) -> HttpResponse:
        access = find(call)
        return json_response(listing(f"{access.kind}s", acl_resources(access.kind, access.owner, access.acl)))

    def get(call: ApiCall) -> HttpResponse:
        access = find(call)
        return access.response(_entity(call, access))

    def insert(call: ApiCall) -> HttpResponse:
        access, body = find(call), call.body()
        return _write(call, access, text(body, "entity"), text(body, "role"))

    def write(call: ApiCall) -> HttpResponse:
        access = find(call)
        return _write(call, access, _entity(call, access), text(call.body(), "role"))

    def delete(call: ApiCall) -> HttpResponse:
        access = find(call)
        entity = _entity(call, access)
        del access.acl[entity]
        _commit(call, access, entity)
        return NO_CONTENT

    return {"list": list_, "get": get, "insert": insert, "patch": write, "update": write, "delete": delete}


def _entity(call: ApiCall, access: _AccessList) -> str:
    """Return the entity of the path; raise 404 if the list has no entry for it."""
    entity = call.names["entity"]
    if entity not in access.acl:
        raise not_found(f"The access control entry for {entity}")
    return entity


def _write(call: ApiCall, access: _AccessList, entity: str, role: str) -> HttpResponse:
    access.acl[entity] = role
    _commit(call, access, entity)
    return access.response(entity)


def _commit(call: ApiCall, access: _AccessList, entity: str) -> None:
    """Update the metadata of the owner, and log the change."""
    call.store.touch(access.owner)
    call.committed(f"{access.owner.resource}/acl/{entity}", access.owner.generation)


BUCKET = _handlers(_of_bucket)
DEFAULT_OBJECT = _handlers(_for_new_objects)
OBJECT = _handlers(_of_object)
