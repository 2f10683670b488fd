"""Service accounts and their keys: create, read, change, delete and restore them. The cloud never checks these keys."""

import base64
import binascii
import hashlib
import json
import re

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import (
    ApiError,
    HttpResponse,
    JsonObject,
    already_exists,
    failed_precondition,
    invalid,
    json_response,
)
from forbear_cloud.storage.fields import enum_name, mapping, optional_text, text, update_mask
from forbear_cloud.storage.iam_state import AccountKey, ServiceAccount
from forbear_cloud.storage.resources import google_page, moment

_ID = re.compile(r"[a-z]([-a-z0-9]{4,28}[a-z0-9])")
_WRITABLE = {"displayName": "display_name", "description": "description"}

_MAX_KEYS = 10
_ALGORITHMS = {2: "KEY_ALG_RSA_2048", 1: "KEY_ALG_RSA_1024", 0: "KEY_ALG_UNSPECIFIED"}
_PRIVATE_KEY_TYPES = {2: "TYPE_GOOGLE_CREDENTIALS_FILE", 1: "TYPE_PKCS12_FILE", 0: "TYPE_UNSPECIFIED"}
_KEY_TYPES = {1: "USER_MANAGED", 2: "SYSTEM_MANAGED", 0: "KEY_TYPE_UNSPECIFIED"}
_NEVER_EXPIRES = "9999-12-31T23:59:59Z"


def create(call: ApiCall) -> HttpResponse:
    """Create the service account that the body names by accountId, and respond with its resource.

    Respond 409 ALREADY_EXISTS if the project has one with this id that is not deleted, and 400 for an invalid id.
    """
    body = call.body()
    account_id, fields = text(body, "accountId"), mapping(body, "serviceAccount")
    if not _ID.fullmatch(account_id):
        raise invalid("accountId must be 6 to 30 characters: lower-case letters, digits and hyphens.")
    values = {attribute: optional_text(fields, name) or "" for name, attribute in _WRITABLE.items()}
    return _changed(call, call.store.iam.create_account(call.names["project"], account_id), values)


def list_(call: ApiCall) -> HttpResponse:
    """List one page of the project's service accounts that are not deleted, by email: by default 20, at most 100."""
    accounts = {
        account.email: account
        for account in call.store.iam.accounts.values()
        if account.project == call.names["project"] and not account.deleted
    }
    return google_page("accounts", accounts, account_resource, call.query, default=20, maximum=100)


def get(call: ApiCall) -> HttpResponse:
    """Read a service account; respond 404 if it does not exist, or is new and not visible yet."""
    account = account_of(call)
    call.store.iam.check_seen(account.name)
    return json_response(account_resource(account))


def patch(call: ApiCall) -> HttpResponse:
    """Change displayName and description of a service account, if the updateMask in the body names them.

    A named field that the body lacks becomes empty; a mask with another name gets a 400.
    """
    account, body = account_of(call), call.body()
    fields, mask = mapping(body, "serviceAccount"), update_mask(text(body, "updateMask"), _WRITABLE)
    return _changed(call, account, {_WRITABLE[name]: optional_text(fields, name) or "" for name in mask})


def update(call: ApiCall) -> HttpResponse:
    """Change displayName and description of a service account, if they are in the body."""
    account, body = account_of(call), call.body()
    values = {_WRITABLE[name]: optional_text(body, name) or "" for name in _WRITABLE if name in body}
    return _changed(call, account, values)


def delete(call: ApiCall) -> HttpResponse:
    """Delete the service account of the path, and respond with an empty object; `undelete` can restore it."""
    account = account_of(call)
    account.deleted = True
    return call.finish(account.name)


def undelete(call: ApiCall) -> HttpResponse:
    """Restore the deleted service account whose unique id is in the path, and respond with it as restoredAccount.

    Respond 404 for an unknown id, 400 if the account is not deleted, and 409 if another account has its email by now.
    """
    iam = call.store.iam
    account = iam.accounts.get(call.names["account"])
    if account is None or call.names["project"] not in {"-", account.project}:
        raise ApiError(404, "Unknown service account")
    if not account.deleted:
        raise failed_precondition(f"Service account {account.unique_id} is not deleted.")
    if iam.find_by_email(account.email) is not None:
        raise already_exists(f"Service account {account.email} exists already.")
    account.deleted = False
    call.commit(account.name)
    return json_response({"restoredAccount": account_resource(account)})


def set_disabled(call: ApiCall, *, disabled: bool) -> HttpResponse:
    """Disable the service account of the path, or enable it again; respond with an empty object."""
    account = account_of(call)
    account.disabled = disabled
    return call.finish(account.name)


def account_of(call: ApiCall) -> ServiceAccount:
    """Return the service account that the path names by email or unique id; raise 404 if it is deleted or unknown."""
    return call.store.iam.account(call.names["project"], call.names["account"])


def _changed(call: ApiCall, account: ServiceAccount, values: dict[str, str]) -> HttpResponse:
    """Set these attributes (names and values) of the account, record the change, and respond with its resource."""
    for attribute, value in values.items():
        setattr(account, attribute, value)
    call.commit(account.name)
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


def create_key(call: ApiCall) -> HttpResponse:
    """Create a key of a service account; only this response contains the private key, so a lost response loses it.

    The private key is a placeholder. Respond 400 if the account has ten keys.
    """
    account, body = account_of(call), call.body()
    algorithm = enum_name(body, "keyAlgorithm", _ALGORITHMS)
    private_key_type = enum_name(body, "privateKeyType", _PRIVATE_KEY_TYPES)
    key = _new_key(call, account, algorithm, "GOOGLE_PROVIDED")
    secret = json.dumps({
        "type": "service_account",
        "project_id": account.project,
        "private_key_id": key.id,
        "private_key": "an embedded cloud signs nothing",
        "client_email": account.email,
        "client_id": account.unique_id,
    })  # fmt: skip
    data = base64.b64encode(secret.encode()).decode()
    return json_response({**_key_resource(key), "privateKeyType": private_key_type, "privateKeyData": data})


def upload_key(call: ApiCall) -> HttpResponse:
    """Add a key of a service account whose private key the client has; the body has the public key.

    Respond 400 if that is not base64 or the account has ten keys. The content of the key is not checked.
    """
    account = account_of(call)
    data = text(call.body(), "publicKeyData")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid value for publicKeyData: it must be base64.") from None
    return json_response(_key_resource(_new_key(call, account, _ALGORITHMS[2], "USER_PROVIDED")))


def list_keys(call: ApiCall) -> HttpResponse:
    """List all keys of a service account: each one is user-managed.

    If the query has keyTypes, but USER_MANAGED is not among them, list none.
    """
    account = account_of(call)
    call.store.iam.check_seen(account.name)
    types = [enum_name({"keyTypes": value}, "keyTypes", _KEY_TYPES) for value in call.request.all("keyTypes")]
    keys = account.keys.values() if not types or "USER_MANAGED" in types else ()
    return json_response({"keys": [_key_resource(key) for key in keys]})


def get_key(call: ApiCall) -> HttpResponse:
    """Read a key, without its private key; respond 404 if it does not exist, or is new and not visible yet."""
    key = _key(call)
    call.store.iam.check_seen(key.name)
    return json_response(_key_resource(key))


def delete_key(call: ApiCall) -> HttpResponse:
    """Delete the key of the path for good, and respond with an empty object."""
    key = _key(call)
    del account_of(call).keys[key.id]
    return call.finish(key.name)


def set_key_disabled(call: ApiCall, *, disabled: bool) -> HttpResponse:
    """Disable the key of the path, or enable it again; respond with an empty object."""
    key = _key(call)
    key.disabled = disabled
    return call.finish(key.name)


def _new_key(call: ApiCall, account: ServiceAccount, algorithm: str, origin: str) -> AccountKey:
    """Add a key with a new id to the account, record the change, and return the key; raise 400 if it has ten keys.

    `origin` is its keyOrigin, such as USER_PROVIDED.
    """
    if len(account.keys) >= _MAX_KEYS:
        raise failed_precondition("Precondition check failed.")
    number = call.store.next_id()
    key_id = hashlib.sha1(f"{account.unique_id}/{number}".encode(), usedforsecurity=False).hexdigest()
    fields: JsonObject = {
        "keyAlgorithm": algorithm,
        "keyOrigin": origin,
        "validAfterTime": moment(call.store.now()),
        "validBeforeTime": _NEVER_EXPIRES,
        "keyType": "USER_MANAGED",
    }
    key = account.keys[key_id] = AccountKey(account.name, key_id, fields)
    call.commit(key.name)
    return key


def _key(call: ApiCall) -> AccountKey:
    """Return the key that the path names; raise 404 if it or its service account does not exist."""
    key = account_of(call).keys.get(call.names["key"])
    if key is None:
        raise ApiError(404, f"Service account key {call.names['key'][:80]} does not exist.")
    return key


def _key_resource(key: AccountKey) -> JsonObject:
    """Return the resource of a key, without its private key."""
    resource: JsonObject = {"name": key.name, **key.fields}
    return {**resource, "disabled": True} if key.disabled else resource
