"""IAM policies of accounts, projects, folders, organizations and tags, and custom roles; old etags are refused.

The cloud stores policies but does not enforce them.
"""

import re
from collections.abc import Callable, Mapping

from forbear_cloud.call import ApiCall, Handlers
from forbear_cloud.http.messages import (
    ApiError,
    HttpResponse,
    Json,
    JsonObject,
    already_exists,
    failed_precondition,
    invalid,
    json_response,
)
from forbear_cloud.iam.accounts import account_of
from forbear_cloud.storage.conditions import is_same_etag
from forbear_cloud.storage.fields import (
    enum_name,
    items,
    mapping,
    optional_text,
    query_flag,
    text,
    texts,
    update_mask,
)
from forbear_cloud.storage.iam_state import Role
from forbear_cloud.storage.model import IamPolicy
from forbear_cloud.storage.resources import google_page
from forbear_cloud.storage.writable import policy_fields

_ROLE_ID = re.compile(r"[a-zA-Z0-9_.]{3,64}")
_STAGES = {0: "ALPHA", 1: "BETA", 2: "GA", 4: "DEPRECATED", 5: "DISABLED", 6: "EAP"}
_VIEWS = {0: "BASIC", 1: "FULL"}
_ROLE_FIELDS = ("title", "description", "includedPermissions", "stage")


def check_unchanged(etag: str | None, current: str) -> None:
    """Raise 409 ABORTED if the `etag` of a request is not the `current` one, so another client has written meanwhile.

    A request without an etag (None or "") passes.
    """
    if etag and not is_same_etag(etag, current):
        advice = "Please retry the whole read-modify-write with exponential backoff."
        raise ApiError(409, f"There were concurrent policy changes. {advice}", "ABORTED")


def _policy_of_account(call: ApiCall) -> tuple[IamPolicy, str]:
    account = account_of(call)
    return account.policy, account.name


def policy_handlers(collection: str) -> Handlers:
    """Return the handlers of IAM policies for the resources of a collection such as "projects", which all exist.

    The path has the id of a resource as its variable "resource".
    """

    def find(call: ApiCall) -> tuple[IamPolicy, str]:
        name = f"{collection}/{call.names['resource']}"
        return call.store.iam.policy(name), name

    return _handlers(find)


def _handlers(find: Callable[[ApiCall], tuple[IamPolicy, str]]) -> Handlers:
    """Return the handlers getIamPolicy, setIamPolicy and testIamPermissions, by these names.

    `find` returns the policy that they read and write, and the name of its resource. testIamPermissions responds with
    all permissions of the request.
    """

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
        call.commit(name)
        return _response(policy)

    def test(call: ApiCall) -> HttpResponse:
        find(call)
        return json_response({"permissions": texts(call.body(), "permissions")})

    return {"getIamPolicy": get, "setIamPolicy": set_, "testIamPermissions": test}


def _response(policy: IamPolicy) -> HttpResponse:
    return json_response({**policy.body, "etag": policy.etag})


ACCOUNT_POLICY = _handlers(_policy_of_account)


def create_role(call: ApiCall) -> HttpResponse:
    """Create a custom role with the roleId in the body, and respond with its resource.

    Respond 409 ALREADY_EXISTS if the project has one with this id, and 400 if that one is deleted or the id is invalid.
    """
    body = call.body()
    project, role_id, fields = call.names["project"], text(body, "roleId"), _role_fields(mapping(body, "role"))
    if not _ROLE_ID.fullmatch(role_id):
        raise invalid("roleId must be 3 to 64 characters: letters, digits, underscores and periods.")
    roles = call.store.iam.roles
    before = roles.get((project, role_id))
    if before is not None and before.deleted:
        raise failed_precondition(f"The role {before.name} is deleted: undelete it, or take another id.")
    if before is not None:
        raise already_exists(f"A role named {role_id} in projects/{project} already exists.")
    role = roles[project, role_id] = Role(project, role_id, fields)
    call.commit(role.name)
    return json_response(role_resource(role))


def list_roles(call: ApiCall) -> HttpResponse:
    """List one page of a project's roles by id, without their permissions unless the query has view=FULL.

    Deleted roles are left out unless it has showDeleted=true.
    """
    full = enum_name(call.query, "view", _VIEWS) == "FULL"
    deleted = query_flag(call.query, "showDeleted")
    roles = {
        role.id: role
        for role in call.store.iam.roles.values()
        if role.project == call.names["project"] and (deleted or not role.deleted)
    }
    return google_page("roles", roles, lambda role: role_resource(role, full=full), call.query, default=300)


def get_role(call: ApiCall) -> HttpResponse:
    """Read a role, which may be deleted; respond 404 if it does not exist, or is new and not visible yet."""
    role = _role(call)
    call.store.iam.check_seen(role.name)
    return json_response(role_resource(role))


def patch_role(call: ApiCall) -> HttpResponse:
    """Change the fields of a role that updateMask names, by default those in the body; respond with its resource.

    A named field that the body lacks is removed. Respond 409 ABORTED if the etag in the body is an old one, and 400 if
    the role is deleted.
    """
    role, body = _role(call), call.body()
    fields, mask = _role_fields(body), call.query.get("updateMask")
    names = update_mask(mask, _ROLE_FIELDS) if mask else list(fields)
    check_unchanged(optional_text(body, "etag"), role.etag)
    if role.deleted:
        raise failed_precondition(f"The role {role.name} is deleted.")
    kept = {name: value for name, value in role.fields.items() if name not in names}
    role.fields = {**kept, **{name: fields[name] for name in names if name in fields}}
    return _changed(call, role)


def delete_role(call: ApiCall) -> HttpResponse:
    """Delete a role, which can be restored, and respond with its resource.

    Respond 409 ABORTED if the etag in the query is an old one, and 400 if the role is deleted already.
    """
    role = _role(call)
    check_unchanged(call.query.get("etag"), role.etag)
    if role.deleted:
        raise failed_precondition(f"The role {role.name} is deleted already.")
    role.deleted = True
    return _changed(call, role)


def undelete_role(call: ApiCall) -> HttpResponse:
    """Restore a deleted role, and respond with its resource.

    Respond 409 ABORTED if the etag in the body is an old one, and 400 if the role is not deleted.
    """
    role = _role(call)
    check_unchanged(optional_text(call.body(), "etag"), role.etag)
    if not role.deleted:
        raise failed_precondition(f"The role {role.name} is not deleted.")
    role.deleted = False
    return _changed(call, role)


def role_resource(role: Role, *, full: bool = True) -> JsonObject:
    """Return the resource of a role; its includedPermissions are left out unless `full`."""
    fields = {name: value for name, value in role.fields.items() if full or name != "includedPermissions"}
    resource: JsonObject = {"name": role.name, **fields, "etag": role.etag}
    return {**resource, "deleted": True} if role.deleted else resource


def _role(call: ApiCall) -> Role:
    """Return the custom role that the path names, deleted or not; raise 404 if it does not exist."""
    return call.store.iam.role(call.names["project"], call.names["role"])


def _role_fields(body: Mapping[str, Json]) -> JsonObject:
    """Return those of title, description, includedPermissions and stage that are in the body.

    Raise 400 for a wrong type or an unknown stage.
    """
    fields: JsonObject = {name: optional_text(body, name) for name in ("title", "description") if name in body}
    if "includedPermissions" in body:
        fields["includedPermissions"] = texts(body, "includedPermissions")
    if "stage" in body:
        fields["stage"] = enum_name(body, "stage", _STAGES)
    return fields


def _changed(call: ApiCall, role: Role) -> HttpResponse:
    """Increase the revision of a changed role, record the change, and respond with its resource."""
    role.revision += 1
    call.commit(role.name)
    return json_response(role_resource(role))
