"""Service accounts: create, list, get, patch, update, delete, undelete, enable and disable."""

import re

from forbear.testing.cloud.call import ApiCall
from forbear.testing.cloud.http.messages import (
    ApiError,
    HttpResponse,
    JsonObject,
    already_exists,
    failed_precondition,
    invalid,
    json_response,
)
from forbear.testing.cloud.storage.fields import mapping, optional_text, text, update_mask
from forbear.testing.cloud.storage.iam_state import ServiceAccount
from forbear.testing.cloud.storage.resources import google_page

_ID = re.compile(r"[a-z]([-a-z0-9]{4,28}[a-z0-9])")
_WRITABLE = {"displayName": "display_name", "description": "description"}


def create(call: ApiCall) -> HttpResponse:
    """Create a service account; respond 409 ALREADY_EXISTS if the project has one with this id."""
    body = call.body()
    account_id, fields = text(body, "accountId"), mapping(body, "serviceAccount")
    if not _ID.fullmatch(account_id):
        raise invalid("accountId must be 6 to 30 characters: lower-case letters, digits and hyphens.")
    values = {attribute: optional_text(fields, name) or "" for name, attribute in _WRITABLE.items()}
    return _changed(call, call.store.iam.create_account(call.names["project"], account_id), values)


def list_(call: ApiCall) -> HttpResponse:
    """List the service accounts of the project by email."""
    accounts = {
        account.email: account
        for account in call.store.iam.accounts.values()
        if account.project == call.names["project"] and not account.deleted
    }
    return google_page("accounts", accounts, account_resource, call.query, default=20, maximum=100)


def get(call: ApiCall) -> HttpResponse:
    """Read a service account."""
    account = account_of(call)
    call.store.iam.check_seen(account.name)
    return json_response(account_resource(account))


def patch(call: ApiCall) -> HttpResponse:
    """Change the fields that the updateMask in the body names."""
    account, body = account_of(call), call.body()
    fields, mask = mapping(body, "serviceAccount"), update_mask(text(body, "updateMask"), _WRITABLE)
    return _changed(call, account, {_WRITABLE[name]: optional_text(fields, name) or "" for name in mask})


def update(call: ApiCall) -> HttpResponse:
    """Change the fields in the body."""
    account, body = account_of(call), call.body()
    values = {_WRITABLE[name]: optional_text(body, name) or "" for name in _WRITABLE if name in body}
    return _changed(call, account, values)


def delete(call: ApiCall) -> HttpResponse:
    """Delete a service account; it can be restored."""
    account = account_of(call)
    account.deleted = True
    return _done(call, account)


def undelete(call: ApiCall) -> HttpResponse:
    """Restore the service account with this unique id; respond 409 if another account has its email by now."""
    iam = call.store.iam
    account = iam.accounts.get(call.names["account"])
    if account is None or call.names["project"] not in {"-", account.project}:
        raise ApiError(404, "Unknown service account")
    if not account.deleted:
        raise failed_precondition(f"Service account {account.unique_id} is not deleted.")
    if iam.by_email(account.email) is not None:
        raise already_exists(f"Service account {account.email} exists already.")
    account.deleted = False
    call.committed(account.name)
    return json_response({"restoredAccount": account_resource(account)})


def enable(call: ApiCall) -> HttpResponse:
    """Enable a service account."""
    account = account_of(call)
    account.disabled = False
    return _done(call, account)


def disable(call: ApiCall) -> HttpResponse:
    """Disable a service account."""
    account = account_of(call)
    account.disabled = True
    return _done(call, account)


def account_of(call: ApiCall) -> ServiceAccount:
    """Return the service account of the path; raise 404 if it does not exist."""
    return call.store.iam.account(call.names["project"], call.names["account"])


def _done(call: ApiCall, account: ServiceAccount) -> HttpResponse:
    """Log a change of the account, and respond with an empty object."""
    call.committed(account.name)
    return json_response({})


def _changed(call: ApiCall, account: ServiceAccount, values: dict[str, str]) -> HttpResponse:
    """Set these attributes of the account, log the change, and respond with the resource."""
    for attribute, value in values.items():
        setattr(account, attribute, value)
    call.committed(account.name)
    return json_response(account_resource(account))


def account_resource(account: ServiceAccount) -> JsonObject:
    """Return the resource of a service account, without empty and false fields."""
    resource: JsonObject = {
        "name": account.name,
        "projectId": account.project,
        "uniqueId": account.unique_id,
        "email": account.email,
        "displayName": account.display_name,
        "description": account.description,
        "disabled": account.disabled,
        "oauth2ClientId": account.unique_id,
        "etag": "MDEwMjE5MjA=",  # never changes: the API deprecates it
    }
    return {name: value for name, value in resource.items() if value not in {"", False}}
