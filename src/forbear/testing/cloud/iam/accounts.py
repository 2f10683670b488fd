"""serviceAccounts: create, list, get, patch, update, delete, undelete, enable and disable."""

import re

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.fields import mapping, optional_text, page, text
from forbear.testing.cloud.storage.iam_state import ServiceAccount

_ID = re.compile(r"[a-z]([-a-z0-9]{4,28}[a-z0-9])")
_WRITABLE = {"displayName": "display_name", "description": "description"}


def create(call: Call) -> Reply:
    """Make a service account; 409 ALREADY_EXISTS when the project has one of that id."""
    body = call.body()
    account_id, given = text(body, "accountId"), mapping(body, "serviceAccount")
    if not _ID.fullmatch(account_id):
        raise invalid("accountId must be 6 to 30 characters: lower-case letters, digits and hyphens.")
    values = {field: optional_text(given, name) or "" for name, field in _WRITABLE.items()}
    account = call.store.iam.create_account(call.names["project"], account_id)
    for field, value in values.items():
        setattr(account, field, value)
    call.committed(account.name)
    return _reply(account)


def list_(call: Call) -> Reply:
    """List the service accounts of the project, by email."""
    accounts = {
        each.email: each
        for each in call.store.iam.accounts.values()
        if each.project == call.names["project"] and not each.deleted
    }
    shown, token = page(sorted(accounts), call.query, "pageSize", usual=20, most=100)
    listed: JsonObject = {"accounts": [account_resource(accounts[email]) for email in shown]}
    return json_reply(listed if token is None else {**listed, "nextPageToken": token})


def get(call: Call) -> Reply:
    """Read a service account."""
    account = found(call)
    call.store.iam.check_seen(account.name)
    return _reply(account)


def patch(call: Call) -> Reply:
    """Change the fields that the body's updateMask names."""
    account, body = found(call), call.body()
    given, mask = mapping(body, "serviceAccount"), text(body, "updateMask").split(",")
    if unknown := [name for name in mask if name.strip() not in _WRITABLE]:
        raise invalid(f"Invalid value for updateMask: '{unknown[0][:80]}'. It must name displayName or description.")
    values = {_WRITABLE[name.strip()]: optional_text(given, name.strip()) or "" for name in mask}
    return _changed(call, account, values)


def update(call: Call) -> Reply:
    """Change the fields given."""
    account, body = found(call), call.body()
    return _changed(
        call, account, {_WRITABLE[name]: optional_text(body, name) or "" for name in _WRITABLE if name in body}
    )


def delete(call: Call) -> Reply:
    """Delete a service account, until it is restored."""
    account = found(call)
    account.deleted = True
    call.committed(account.name)
    return json_reply({})


def undelete(call: Call) -> Reply:
    """Restore a deleted service account, named by its unique id, unless another has its email by now."""
    iam = call.store.iam
    account = iam.accounts.get(call.names["account"])
    if account is None or call.names["project"] not in {"-", account.project}:
        raise ApiError(404, "Unknown service account")
    if not account.deleted:
        raise ApiError(400, f"Service account {account.unique_id} is not deleted.", "FAILED_PRECONDITION")
    if iam.by_email(account.email) is not None:
        raise ApiError(409, f"Service account {account.email} exists already.", "ALREADY_EXISTS")
    account.deleted = False
    call.committed(account.name)
    return json_reply({"restoredAccount": account_resource(account)})


def enable(call: Call) -> Reply:
    """Enable a service account."""
    return _switched(call, disabled=False)


def disable(call: Call) -> Reply:
    """Disable a service account."""
    return _switched(call, disabled=True)


def found(call: Call) -> ServiceAccount:
    """The service account of the path."""
    return call.store.iam.account(call.names["project"], call.names["account"])


def _switched(call: Call, *, disabled: bool) -> Reply:
    account = found(call)
    account.disabled = disabled
    call.committed(account.name)
    return json_reply({})


def _changed(call: Call, account: ServiceAccount, values: dict[str, str]) -> Reply:
    for field, value in values.items():
        setattr(account, field, value)
    call.committed(account.name)
    return _reply(account)


def account_resource(account: ServiceAccount) -> JsonObject:
    """A service account as clients see it."""
    resource: JsonObject = {
        "name": account.name,
        "projectId": account.project,
        "uniqueId": account.unique_id,
        "email": account.email,
        "displayName": account.display_name,
        "description": account.description,
        "disabled": account.disabled,
        "oauth2ClientId": account.unique_id,
        "etag": "MDEwMjE5MjA=",  # always the same: the API calls it deprecated
    }
    return {name: value for name, value in resource.items() if value not in {"", False}}


def _reply(account: ServiceAccount) -> Reply:
    return json_reply(account_resource(account))
