"""IAM policies of service accounts and projects: read, write guarded by an etag, and test permissions.

The cloud stores policies but does not enforce them.
"""

from collections.abc import Callable

from forbear.testing.cloud.call import ApiCall, Handlers
from forbear.testing.cloud.http.messages import ApiError, HttpResponse, json_response
from forbear.testing.cloud.iam.accounts import account_of
from forbear.testing.cloud.storage.conditions import same_etag
from forbear.testing.cloud.storage.fields import items, mapping, optional_text, texts
from forbear.testing.cloud.storage.model import IamPolicy
from forbear.testing.cloud.storage.writable import policy_fields


def check_unchanged(etag: str | None, current: str) -> None:
    """Raise 409 ABORTED if a request has an etag, and another client has written since that etag was read."""
    if etag and not same_etag(etag, current):
        text = (
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
        )
        raise ApiError(409, text, "ABORTED")


def _of_account(call: ApiCall) -> tuple[IamPolicy, str]:
    account = account_of(call)
    return account.policy, account.name


def _of_project(call: ApiCall) -> tuple[IamPolicy, str]:
    project = call.names["project"]
    return call.store.iam.policy(project), f"projects/{project}"


def _handlers(find: Callable[[ApiCall], tuple[IamPolicy, str]]) -> Handlers:
    """Return the handlers, by method name, for the policy that `find` returns with the name of its resource."""

    def get(call: ApiCall) -> HttpResponse:
        call.body()
        policy, name = find(call)
        call.store.iam.check_seen(name)
        return _response(policy)

    def set_(call: ApiCall) -> HttpResponse:
        (policy, name), body = find(call), call.body()
        if "policy" not in body:
            raise ApiError(400, "The request has no policy.")
        wanted = mapping(body, "policy")
        written = policy_fields(wanted)
        # As at the service, a request without an etag overwrites any policy.
        check_unchanged(optional_text(wanted, "etag"), policy.etag)
        if "auditConfigs" in wanted:
            written["auditConfigs"] = items(wanted, "auditConfigs")
        policy.write(written)
        call.committed(name)
        return _response(policy)

    def test(call: ApiCall) -> HttpResponse:
        find(call)
        return json_response({"permissions": texts(call.body(), "permissions")})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


def _response(policy: IamPolicy) -> HttpResponse:
    return json_response({**policy.body, "etag": policy.etag})


ACCOUNT = _handlers(_of_account)
PROJECT = _handlers(_of_project)
