"""Keys of service accounts: create, upload, list, get, delete, enable and disable; the cloud never checks a key."""

import base64
import binascii
import hashlib
import json

from forbear.testing.cloud.call import ApiCall
from forbear.testing.cloud.http.messages import (
    ApiError,
    HttpResponse,
    JsonObject,
    failed_precondition,
    invalid,
    json_response,
)
from forbear.testing.cloud.iam.accounts import account_of
from forbear.testing.cloud.storage.fields import enum_name, text
from forbear.testing.cloud.storage.iam_state import AccountKey, ServiceAccount
from forbear.testing.cloud.storage.resources import moment

_MAX_KEYS = 10
_ALGORITHMS = {2: "KEY_ALG_RSA_2048", 1: "KEY_ALG_RSA_1024", 0: "KEY_ALG_UNSPECIFIED"}
_PRIVATE_KEY_TYPES = {2: "TYPE_GOOGLE_CREDENTIALS_FILE", 1: "TYPE_PKCS12_FILE", 0: "TYPE_UNSPECIFIED"}
_KEY_TYPES = {1: "USER_MANAGED", 2: "SYSTEM_MANAGED", 0: "KEY_TYPE_UNSPECIFIED"}
_NEVER_EXPIRES = "9999-12-31T23:59:59Z"


def create(call: ApiCall) -> HttpResponse:
    """Create a key; only this response contains the private key, so a lost response loses it."""
    account, body = account_of(call), call.body()
    algorithm = enum_name(body, "keyAlgorithm", _ALGORITHMS)
    private_key_type = enum_name(body, "privateKeyType", _PRIVATE_KEY_TYPES)
    key = _new(call, account, algorithm, "GOOGLE_PROVIDED")
    secret = json.dumps({
        "type": "service_account",
        "project_id": account.project,
        "private_key_id": key.id,
        "private_key": "an embedded cloud signs nothing",
        "client_email": account.email,
        "client_id": account.unique_id,
    })  # fmt: skip
    data = base64.b64encode(secret.encode()).decode()
    return json_response({**_resource(key), "privateKeyType": private_key_type, "privateKeyData": data})


def upload(call: ApiCall) -> HttpResponse:
    """Add a public key whose private key the client has."""
    account = account_of(call)
    data = text(call.body(), "publicKeyData")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid value for publicKeyData: it must be base64.") from None
    return json_response(_resource(_new(call, account, _ALGORITHMS[2], "USER_PROVIDED")))


def list_(call: ApiCall) -> HttpResponse:
    """List the keys of a service account; with keyTypes only those of these types."""
    account = account_of(call)
    call.store.iam.check_seen(account.name)
    types = [enum_name({"keyTypes": value}, "keyTypes", _KEY_TYPES) for value in call.request.all("keyTypes")]
    keys = account.keys.values() if not types or "USER_MANAGED" in types else ()
    return json_response({"keys": [_resource(key) for key in keys]})


def get(call: ApiCall) -> HttpResponse:
    """Read a key, without its private key."""
    key = _key(call)
    call.store.iam.check_seen(key.name)
    return json_response(_resource(key))


def delete(call: ApiCall) -> HttpResponse:
    """Delete a key for good."""
    key = _key(call)
    del account_of(call).keys[key.id]
    return _done(call, key)


def enable(call: ApiCall) -> HttpResponse:
    """Enable a key."""
    key = _key(call)
    key.disabled = False
    return _done(call, key)


def disable(call: ApiCall) -> HttpResponse:
    """Disable a key."""
    key = _key(call)
    key.disabled = True
    return _done(call, key)


def _new(call: ApiCall, account: ServiceAccount, algorithm: str, origin: str) -> AccountKey:
    """Add a key to the account; raise 400 if it has ten."""
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
    call.committed(key.name)
    return key


def _key(call: ApiCall) -> AccountKey:
    """Return the key of the path; raise 404 if it does not exist."""
    key = account_of(call).keys.get(call.names["key"])
    if key is None:
        raise ApiError(404, f"Service account key {call.names['key'][:80]} does not exist.")
    return key


def _done(call: ApiCall, key: AccountKey) -> HttpResponse:
    """Log a change of the key, and respond with an empty object."""
    call.committed(key.name)
    return json_response({})


def _resource(key: AccountKey) -> JsonObject:
    """Return the resource of a key, without its private key."""
    resource: JsonObject = {"name": key.name, **key.fields}
    return {**resource, "disabled": True} if key.disabled else resource
