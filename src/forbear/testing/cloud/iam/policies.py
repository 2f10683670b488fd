"""Policies of service accounts and of projects: read, write under an etag, test permissions; nothing is ever denied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.iam.accounts import found
from forbear.testing.cloud.storage.conditions import same_etag
from forbear.testing.cloud.storage.fields import items, mapping, optional_text, text, texts
from forbear.testing.cloud.storage.model import Policy


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose policy it is."""

    policy: Policy
    name: str

    def reply(self) -> Reply:
        return json_reply({**self.policy.body, "etag": self.policy.etag})


def concurrent_change() -> ApiError:
    """409 ABORTED: somebody else has written since the etag was read."""
    text = "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
    return ApiError(409, text, "ABORTED")


def _of_account(call: Call) -> _Place:
    account = found(call)
    return _Place(account.policy, account.name)


def _of_project(call: Call) -> _Place:
    project = call.names["project"]
    return _Place(call.store.iam.policy(project), f"projects/{project}")


def _handlers(find: Callable[[Call], _Place]) -> Mapping[str, Handler]:
    def get(call: Call) -> Reply:
        call.body()
        place = find(call)
        call.store.iam.check_seen(place.name)
        return place.reply()

    def set_(call: Call) -> Reply:
        place, body = find(call), call.body()
        if "policy" not in body:
            raise ApiError(400, "The request has no policy.")
        given = mapping(body, "policy")
        etag = optional_text(given, "etag")
        bindings = items(given, "bindings")
        for binding in bindings:
            text(binding, "role")
            texts(binding, "members")
        # Without an etag the policy is overwritten blindly, as at the service.
        if etag and not same_etag(etag, place.policy.etag):
            raise concurrent_change()
        policy: JsonObject = {"version": given.get("version", 1), "bindings": bindings}
        if "auditConfigs" in given:
            policy["auditConfigs"] = items(given, "auditConfigs")
        place.policy.body = policy
        place.policy.revision += 1
        call.committed(place.name)
        return place.reply()

    def test(call: Call) -> Reply:
        find(call)
        return json_reply({"permissions": texts(call.body(), "permissions")})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


ACCOUNT = _handlers(_of_account)
PROJECT = _handlers(_of_project)
