"""Custom roles of a project: create, list, get, patch, delete and undelete, guarded by an etag where one is given."""

import re
from collections.abc import Mapping

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import Json, JsonObject, Reply, json_reply
from forbear.testing.cloud.iam.policies import concurrent_change
from forbear.testing.cloud.storage.conditions import same_etag
from forbear.testing.cloud.storage.fields import mapping, one_of, optional_text, page, query_flag, text, texts
from forbear.testing.cloud.storage.iam_state import Role

_ID = re.compile(r"[a-zA-Z0-9_.]{3,64}")
_STAGES = ("ALPHA", "BETA", "GA", "DEPRECATED", "DISABLED", "EAP")
_WRITABLE = ("title", "description", "includedPermissions", "stage")


def create(call: Call) -> Reply:
    """Make a role; 409 ALREADY_EXISTS when the project has one of that id, 400 when it has a deleted one."""
    body = call.body()
    project, role_id, fields = call.names["project"], text(body, "roleId"), _fields(mapping(body, "role"))
    if not _ID.fullmatch(role_id):
        raise invalid("roleId must be 3 to 64 characters: letters, digits, underscores and periods.")
    roles = call.store.iam.roles
    before = roles.get((project, role_id))
    if before is not None and before.deleted:
        raise ApiError(
            400, f"The role {before.name} is deleted: undelete it, or take another id.", "FAILED_PRECONDITION"
        )
    if before is not None:
        raise ApiError(409, f"A role named {role_id} in projects/{project} already exists.", "ALREADY_EXISTS")
    role = roles[project, role_id] = Role(project, role_id, fields)
    call.committed(role.name)
    return _reply(role)


def list_(call: Call) -> Reply:
    """List the roles by id; deleted ones with showDeleted, permissions with view=FULL."""
    full = one_of(call.query, "view", ("BASIC", "FULL", "ROLE_VIEW_UNSPECIFIED")) == "FULL"
    deleted = query_flag(call.query, "showDeleted")
    roles = {
        role.id: role
        for role in call.store.iam.roles.values()
        if role.project == call.names["project"] and (deleted or not role.deleted)
    }
    shown, token = page(sorted(roles), call.query, "pageSize", usual=300, most=1000)
    listed: JsonObject = {"roles": [role_resource(roles[role_id], full=full) for role_id in shown]}
    return json_reply(listed if token is None else {**listed, "nextPageToken": token})


def get(call: Call) -> Reply:
    """Read a role, deleted ones included."""
    role = _role(call)
    call.store.iam.check_seen(role.name)
    return _reply(role)


def patch(call: Call) -> Reply:
    """Change the fields that updateMask names, or all that are given; 409 ABORTED when the etag is an old one."""
    role, body = _role(call), call.body()
    fields = _fields(body)
    mask = call.query.get("updateMask")
    names = fields.keys() if not mask else {name.strip() for name in mask.split(",")}
    if unknown := sorted(names - set(_WRITABLE)):
        raise invalid(f"Invalid value for updateMask: '{unknown[0][:80]}'. It may name {', '.join(_WRITABLE)}.")
    _check_etag(role, optional_text(body, "etag"))
    if role.deleted:
        raise ApiError(400, f"The role {role.name} is deleted.", "FAILED_PRECONDITION")
    kept = {name: value for name, value in role.fields.items() if name not in names}
    role.fields = {**kept, **{name: fields[name] for name in names if name in fields}}
    return _changed(call, role)


def delete(call: Call) -> Reply:
    """Delete a role, until it is restored; 409 ABORTED when the query's etag is an old one."""
    role = _role(call)
    _check_etag(role, call.query.get("etag"))
    if role.deleted:
        raise ApiError(400, f"The role {role.name} is deleted already.", "FAILED_PRECONDITION")
    role.deleted = True
    return _changed(call, role)


def undelete(call: Call) -> Reply:
    """Restore a deleted role; 409 ABORTED when the body's etag is an old one."""
    role = _role(call)
    _check_etag(role, optional_text(call.body(), "etag"))
    if not role.deleted:
        raise ApiError(400, f"The role {role.name} is not deleted.", "FAILED_PRECONDITION")
    role.deleted = False
    return _changed(call, role)


def _role(call: Call) -> Role:
    return call.store.iam.role(call.names["project"], call.names["role"])


def _check_etag(role: Role, etag: str | None) -> None:
    if etag and not same_etag(etag, role.etag):
        raise concurrent_change()


def _fields(given: Mapping[str, Json]) -> JsonObject:
    fields: JsonObject = {name: optional_text(given, name) for name in ("title", "description") if name in given}
    if "includedPermissions" in given:
        fields["includedPermissions"] = texts(given, "includedPermissions")
    if "stage" in given:
        fields["stage"] = one_of(given, "stage", _STAGES)
    return fields


def _changed(call: Call, role: Role) -> Reply:
    role.revision += 1
    call.committed(role.name)
    return _reply(role)


def role_resource(role: Role, *, full: bool = True) -> JsonObject:
    """A role as clients see it; its permissions only when `full`."""
    fields = {name: value for name, value in role.fields.items() if full or name != "includedPermissions"}
    resource: JsonObject = {"name": role.name, **fields, "etag": role.etag}
    return {**resource, "deleted": True} if role.deleted else resource


def _reply(role: Role) -> Reply:
    return json_reply(role_resource(role))
