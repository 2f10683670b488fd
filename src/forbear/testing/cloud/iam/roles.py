"""Custom roles of a project: create, list, get, patch, delete and undelete, guarded by an etag if there is one."""

import re
from collections.abc import Mapping

from forbear.testing.cloud.call import ApiCall
from forbear.testing.cloud.http.messages import (
    HttpResponse,
    Json,
    JsonObject,
    already_exists,
    failed_precondition,
    invalid,
    json_response,
)
from forbear.testing.cloud.iam.policies import check_unchanged
from forbear.testing.cloud.storage.fields import enum_name, mapping, optional_text, query_flag, text, texts, update_mask
from forbear.testing.cloud.storage.iam_state import Role
from forbear.testing.cloud.storage.resources import google_page

_ID = re.compile(r"[a-zA-Z0-9_.]{3,64}")
_STAGES = {0: "ALPHA", 1: "BETA", 2: "GA", 4: "DEPRECATED", 5: "DISABLED", 6: "EAP"}
_VIEWS = {0: "BASIC", 1: "FULL"}
_WRITABLE = ("title", "description", "includedPermissions", "stage")


def create(call: ApiCall) -> HttpResponse:
    """Create a role; respond 409 ALREADY_EXISTS if the project has one with this id, 400 if that one is deleted."""
    body = call.body()
    project, role_id, fields = call.names["project"], text(body, "roleId"), _fields(mapping(body, "role"))
    if not _ID.fullmatch(role_id):
        raise invalid("roleId must be 3 to 64 characters: letters, digits, underscores and periods.")
    roles = call.store.iam.roles
    before = roles.get((project, role_id))
    if before is not None and before.deleted:
        raise failed_precondition(f"The role {before.name} is deleted: undelete it, or take another id.")
    if before is not None:
        raise already_exists(f"A role named {role_id} in projects/{project} already exists.")
    role = roles[project, role_id] = Role(project, role_id, fields)
    call.committed(role.name)
    return json_response(role_resource(role))


def list_(call: ApiCall) -> HttpResponse:
    """List the roles of a project by id: with showDeleted=true also deleted ones, with view=FULL their permissions."""
    full = enum_name(call.query, "view", _VIEWS) == "FULL"
    deleted = query_flag(call.query, "showDeleted")
    roles = {
        role.id: role
        for role in call.store.iam.roles.values()
        if role.project == call.names["project"] and (deleted or not role.deleted)
    }
    return google_page("roles", roles, lambda role: role_resource(role, full=full), call.query, default=300)


def get(call: ApiCall) -> HttpResponse:
    """Read a role, which may be deleted."""
    role = _role(call)
    call.store.iam.check_seen(role.name)
    return json_response(role_resource(role))


def patch(call: ApiCall) -> HttpResponse:
    """Change the fields of a role that updateMask names, by default those in the body.

    Respond 409 ABORTED if the etag in the body is an old one.
    """
    role, body = _role(call), call.body()
    fields, mask = _fields(body), call.query.get("updateMask")
    names = update_mask(mask, _WRITABLE) if mask else list(fields)
    check_unchanged(optional_text(body, "etag"), role.etag)
    if role.deleted:
        raise failed_precondition(f"The role {role.name} is deleted.")
    kept = {name: value for name, value in role.fields.items() if name not in names}
    role.fields = {**kept, **{name: fields[name] for name in names if name in fields}}
    return _changed(call, role)


def delete(call: ApiCall) -> HttpResponse:
    """Delete a role, which can be restored; respond 409 ABORTED if the etag in the query is an old one."""
    role = _role(call)
    check_unchanged(call.query.get("etag"), role.etag)
    if role.deleted:
        raise failed_precondition(f"The role {role.name} is deleted already.")
    role.deleted = True
    return _changed(call, role)


def undelete(call: ApiCall) -> HttpResponse:
    """Restore a deleted role; respond 409 ABORTED if the etag in the body is an old one."""
    role = _role(call)
    check_unchanged(optional_text(call.body(), "etag"), role.etag)
    if not role.deleted:
        raise failed_precondition(f"The role {role.name} is not deleted.")
    role.deleted = False
    return _changed(call, role)


def role_resource(role: Role, *, full: bool = True) -> JsonObject:
    """Return the resource of a role, with its permissions if `full`."""
    fields = {name: value for name, value in role.fields.items() if full or name != "includedPermissions"}
    resource: JsonObject = {"name": role.name, **fields, "etag": role.etag}
    return {**resource, "deleted": True} if role.deleted else resource


def _role(call: ApiCall) -> Role:
    """Return the role of the path, deleted or not; raise 404 if it does not exist."""
    return call.store.iam.role(call.names["project"], call.names["role"])


def _fields(body: Mapping[str, Json]) -> JsonObject:
    """Return the writable fields in the body; raise 400 for a wrong type or an unknown stage."""
    fields: JsonObject = {name: optional_text(body, name) for name in ("title", "description") if name in body}
    if "includedPermissions" in body:
        fields["includedPermissions"] = texts(body, "includedPermissions")
    if "stage" in body:
        fields["stage"] = enum_name(body, "stage", _STAGES)
    return fields


def _changed(call: ApiCall, role: Role) -> HttpResponse:
    """Raise the revision of a changed role, record the change, and respond with its resource."""
    role.revision += 1
    call.committed(role.name)
    return json_response(role_resource(role))
