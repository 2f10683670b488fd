"""IAM policies of buckets, objects and managed folders: read, write guarded by an etag, and test permissions.

The cloud stores policies but does not enforce them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forbear.testing.cloud.api.folders import managed_folder
from forbear.testing.cloud.call import ApiCall, Handler
from forbear.testing.cloud.http.messages import HttpResponse, JsonObject, condition_not_met, json_response, required
from forbear.testing.cloud.storage.conditions import check_match, same_etag
from forbear.testing.cloud.storage.fields import items, optional_text, text
from forbear.testing.cloud.storage.model import IamPolicy


@dataclass(frozen=True, slots=True)
class _PolicyOwner:
    """A policy, and the resource that it belongs to: its name in the journal and its generation (None: it has none)."""

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


def _of_bucket(call: ApiCall) -> _PolicyOwner:
    bucket = call.bucket()
    return _PolicyOwner(bucket.policy, f"projects/_/buckets/{bucket.name}", bucket.name, bucket.generation)


def _of_object(call: ApiCall) -> _PolicyOwner:
    item = call.item()
    resource_id = f"projects/_/buckets/{item.bucket}/objects/{item.name}"
    return _PolicyOwner(item.policy, resource_id, item.resource, item.generation)


def _of_managed_folder(call: ApiCall) -> _PolicyOwner:
    folder = managed_folder(call)
    resource = f"{call.names['bucket']}/managedFolders/{folder.name}"
    return _PolicyOwner(folder.policy, f"projects/_/buckets/{resource}", resource, None)


def _handlers(find: Callable[[ApiCall], _PolicyOwner]) -> Mapping[str, Handler]:
    """Return the handlers, by method name, for the policies that `find` returns."""

    def get(call: ApiCall) -> HttpResponse:
        return find(call).response()

    def set_(call: ApiCall) -> HttpResponse:
        owner, body = find(call), call.body()
        etag = optional_text(body, "etag")
        if etag and not same_etag(etag, owner.policy.etag):
            raise condition_not_met("etag")
        check_match(call.request.headers, owner.policy.etag)
        bindings = items(body, "bindings")
        for binding in bindings:
            text(binding, "role")
        owner.policy.write({"version": body.get("version", 1), "bindings": bindings})
        call.committed(owner.resource, owner.generation)
        return owner.response()

    def test(call: ApiCall) -> HttpResponse:
        find(call)
        wanted = call.request.all("permissions")
        if not wanted:
            raise required("permissions")
        return json_response({"kind": "storage#testIamPermissionsResponse", "permissions": wanted})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


BUCKET = _handlers(_of_bucket)
OBJECT = _handlers(_of_object)
MANAGED_FOLDER = _handlers(_of_managed_folder)
