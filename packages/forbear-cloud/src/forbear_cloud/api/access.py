"""Access to buckets, objects and managed folders: access control lists (ACLs) and IAM policies.

The cloud stores both but enforces neither: every client may do everything.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forbear_cloud.api.folders import find_managed_folder
from forbear_cloud.call import ApiCall, Handlers
from forbear_cloud.http.messages import (
    NO_CONTENT,
    ApiError,
    HttpResponse,
    JsonObject,
    condition_not_met,
    json_response,
    not_found,
    required,
)
from forbear_cloud.storage.conditions import check_match, is_same_etag
from forbear_cloud.storage.fields import optional_text, text
from forbear_cloud.storage.model import Bucket, IamPolicy, StoredObject, get_object
from forbear_cloud.storage.resources import acl_resource, acl_resources, listing
from forbear_cloud.storage.writable import policy_fields


@dataclass(frozen=True, slots=True)
class _AccessList:
    """An access control list (entity to role), and the bucket or object that it belongs to.

    `kind` is "bucketAccessControl" or "objectAccessControl".
    """

    kind: str
    owner: Bucket | StoredObject
    acl: dict[str, str]

    def response(self, entity: str) -> HttpResponse:
        return json_response(acl_resource(self.kind, self.owner, entity, self.acl[entity]))


def _bucket_acl(call: ApiCall) -> _AccessList:
    bucket = _acl_bucket(call)
    return _AccessList("bucketAccessControl", bucket, bucket.acl)


def _default_acl(call: ApiCall) -> _AccessList:
    bucket = _acl_bucket(call)
    return _AccessList("objectAccessControl", bucket, bucket.default_acl)


def _object_acl(call: ApiCall) -> _AccessList:
    _acl_bucket(call)
    item = call.item()
    return _AccessList("objectAccessControl", item, item.acl)


def _acl_bucket(call: ApiCall) -> Bucket:
    """Return the bucket of the path; raise 404 if it does not exist.

    Raise 400 if it has uniform bucket-level access, which turns access control lists off.
    """
    bucket = call.bucket()
    uniform = get_object(get_object(bucket.fields, "iamConfiguration"), "uniformBucketLevelAccess")
    if uniform.get("enabled") is True:
        raise ApiError(400, "Cannot use ACL API when uniform bucket-level access is enabled.", "invalid")
    return bucket


def _acl_handlers(find: Callable[[ApiCall], _AccessList]) -> Handlers:
    """Return the handlers list, get, insert, patch, update and delete for the entries of an access control list.

    `find` returns the list that a call is about. Patch and update do the same: set the role of an entity in the list.
    """

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
    """Raise the metageneration of the owner of an access list, and record the change in the journal."""
    call.store.touch(access.owner)
    call.commit(f"{access.owner.resource}/acl/{entity}", access.owner.generation)


@dataclass(frozen=True, slots=True)
class _PolicyOwner:
    """An IAM policy, and the resource that it belongs to.

    `resource_id` is the resource's name in the API, `resource` its name in the journal, and `generation` its generation
    (None: it has none).
    """

    policy: IamPolicy
    resource_id: str
    resource: str
    generation: int | None

    def response(self) -> HttpResponse:
        body: JsonObject = {
            "kind": "storage#policy",
            "resourceId": self.resource_id,
            **self.policy.body,
            "etag": self.policy.etag,
        }
        return json_response(body, headers=(("ETag", self.policy.etag),))


def _bucket_policy(call: ApiCall) -> _PolicyOwner:
    bucket = call.bucket()
    return _PolicyOwner(bucket.policy, f"projects/_/buckets/{bucket.name}", bucket.name, bucket.generation)


def _object_policy(call: ApiCall) -> _PolicyOwner:
    item = call.item()
    resource_id = f"projects/_/buckets/{item.bucket}/objects/{item.name}"
    return _PolicyOwner(item.policy, resource_id, item.resource, item.generation)


def _find_policy_of_managed_folder(call: ApiCall) -> _PolicyOwner:
    folder = find_managed_folder(call)
    resource = f"{call.names['bucket']}/managedFolders/{folder.name}"
    return _PolicyOwner(folder.policy, f"projects/_/buckets/{resource}", resource, None)


def _policy_handlers(find: Callable[[ApiCall], _PolicyOwner]) -> Handlers:
    """Return the handlers getIamPolicy, setIamPolicy and testIamPermissions for an IAM policy.

    `find` returns the policy that a call is about. The second responds 412 to an entity tag that is not the current
    one. The third grants every permission in the query.
    """

    def get(call: ApiCall) -> HttpResponse:
        return find(call).response()

    def set_(call: ApiCall) -> HttpResponse:
        owner, body = find(call), call.body()
        etag = optional_text(body, "etag")
        if etag and not is_same_etag(etag, owner.policy.etag):
            raise condition_not_met("etag")
        check_match(call.request.headers, owner.policy.etag)
        owner.policy.write(policy_fields(body))
        call.commit(owner.resource, owner.generation)
        return owner.response()

    def test(call: ApiCall) -> HttpResponse:
        find(call)
        wanted = call.request.all("permissions")
        if not wanted:
            raise required("permissions")
        return json_response({"kind": "storage#testIamPermissionsResponse", "permissions": wanted})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


BUCKET_ACL = _acl_handlers(_bucket_acl)
DEFAULT_OBJECT_ACL = _acl_handlers(_default_acl)
OBJECT_ACL = _acl_handlers(_object_acl)
BUCKET_POLICY = _policy_handlers(_bucket_policy)
OBJECT_POLICY = _policy_handlers(_object_policy)
MANAGED_FOLDER_POLICY = _policy_handlers(_find_policy_of_managed_folder)
