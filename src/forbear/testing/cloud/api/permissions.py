"""IAM policies of buckets and objects: read, write under an etag, test permissions; nothing is ever denied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forbear.testing.cloud.api.folders import find_folder
from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.http.errors import condition_not_met, invalid, required
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.conditions import check_match, same_etag
from forbear.testing.cloud.storage.fields import items, text
from forbear.testing.cloud.storage.model import Policy


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose policy it is."""

    policy: Policy
    resource_id: str
    resource: str
    generation: int | None

    def reply(self) -> Reply:
        body: JsonObject = {
            "kind": "storage#policy",
            "resourceId": self.resource_id,
            **self.policy.body,
            "etag": self.policy.etag,
        }
        return json_reply(body, headers=(("ETag", self.policy.etag),))


def _of_bucket(call: Call) -> _Place:
    bucket = call.bucket()
    return _Place(bucket.policy, f"projects/_/buckets/{bucket.name}", bucket.name, bucket.generation)


def _of_object(call: Call) -> _Place:
    item = call.item()
    resource_id = f"projects/_/buckets/{item.bucket}/objects/{item.name}"
    return _Place(item.policy, resource_id, item.resource, item.generation)


def _of_managed_folder(call: Call) -> _Place:
    bucket, folder = call.bucket(), find_folder(call, call.bucket().managed_folders, "managedFolder")
    resource_id = f"projects/_/buckets/{bucket.name}/managedFolders/{folder.name}"
    return _Place(folder.policy, resource_id, f"{bucket.name}/managedFolders/{folder.name}", None)


def _handlers(find: Callable[[Call], _Place]) -> Mapping[str, Handler]:
    def get(call: Call) -> Reply:
        return find(call).reply()

    def set_(call: Call) -> Reply:
        place, body = find(call), call.body()
        etag = body.get("etag")
        if etag is not None and not isinstance(etag, str):
            raise invalid("Invalid value for etag: it must be a string.")
        if etag and not same_etag(etag, place.policy.etag):
            raise condition_not_met("etag")
        check_match(call.request.headers, place.policy.etag)
        bindings = items(body, "bindings")
        for binding in bindings:
            text(binding, "role")
        place.policy.body = {"version": body.get("version", 1), "bindings": bindings}
        place.policy.revision += 1
        call.committed(place.resource, place.generation)
        return place.reply()

    def test(call: Call) -> Reply:
        find(call)
        wanted = call.request.all("permissions")
        if not wanted:
            raise required("permissions")
        return json_reply({"kind": "storage#testIamPermissionsResponse", "permissions": wanted})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


BUCKET = _handlers(_of_bucket)
OBJECT = _handlers(_of_object)
MANAGED_FOLDER = _handlers(_of_managed_folder)
