"""serviceAccounts.keys: create, list, get, delete, enable, disable and upload; the keys open nothing."""

import base64
import binascii
import hashlib
import json

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.iam.accounts import found
from forbear.testing.cloud.storage.fields import one_of, text
from forbear.testing.cloud.storage.iam_state import Key, ServiceAccount
from forbear.testing.cloud.storage.resources import moment

_MOST = 10
_ALGORITHMS = ("KEY_ALG_RSA_2048", "KEY_ALG_RSA_1024", "KEY_ALG_UNSPECIFIED")
_FORMS = ("TYPE_GOOGLE_CREDENTIALS_FILE", "TYPE_PKCS12_FILE", "TYPE_UNSPECIFIED")
_ORIGINS = ("USER_MANAGED", "SYSTEM_MANAGED", "KEY_TYPE_UNSPECIFIED")
_FOREVER = "9999-12-31T23:59:59Z"


def create(call: Call) -> Reply:
    """Make a key; the private part is in this reply and nowhere else, so a lost reply loses it."""
    account, body = found(call), call.body()
    algorithm, form = one_of(body, "keyAlgorithm", _ALGORITHMS), one_of(body, "privateKeyType", _FORMS)
    key = _new(call, account, {"keyAlgorithm": algorithm, "keyOrigin": "GOOGLE_PROVIDED"})
    secret = json.dumps({
        "type": "service_account",
        "project_id": account.project,
        "private_key_id": key.id,
        "private_key": "an embedded cloud signs nothing",
        "client_email": account.email,
        "client_id": account.unique_id,
    })  # fmt: skip
    data = base64.b64encode(secret.encode()).decode()
    return json_reply({**_resource(account, key), "privateKeyType": form, "privateKeyData": data})


def upload(call: Call) -> Reply:
    """Add a public key whose private part the caller has."""
    account = found(call)
    data = text(call.body(), "publicKeyData")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid value for publicKeyData: it must be base64.") from None
    return json_reply(
        _resource(account, _new(call, account, {"keyAlgorithm": _ALGORITHMS[0], "keyOrigin": "USER_PROVIDED"}))
    )


def list_(call: Call) -> Reply:
    """List the keys of a service account, of the types asked for."""
    account = found(call)
    call.store.iam.check_seen(account.name)
    types = call.request.all("keyTypes")
    if unknown := set(types) - set(_ORIGINS):
        raise invalid(f"Invalid value for keyTypes: '{min(unknown)[:80]}'. It must be one of {', '.join(_ORIGINS)}.")
    keys = account.keys.values() if not types or "USER_MANAGED" in types else ()
    return json_reply({"keys": [_resource(account, key) for key in keys]})


def get(call: Call) -> Reply:
    """Read a key, without its private part."""
    account = found(call)
    key = _key(call, account)
    call.store.iam.check_seen(_name(account, key))
    return json_reply(_resource(account, key))


def delete(call: Call) -> Reply:
    """Delete a key for good."""
    account = found(call)
    key = _key(call, account)
    del account.keys[key.id]
    call.committed(_name(account, key))
    return json_reply({})


def enable(call: Call) -> Reply:
    """Enable a key."""
    return _switched(call, disabled=False)


def disable(call: Call) -> Reply:
    """Disable a key."""
    return _switched(call, disabled=True)


def _new(call: Call, account: ServiceAccount, fields: JsonObject) -> Key:
    if len(account.keys) >= _MOST:
        raise ApiError(400, "Precondition check failed.", "FAILED_PRECONDITION")
    number = call.store.next_id()
    key_id = hashlib.sha1(f"{account.unique_id}/{number}".encode(), usedforsecurity=False).hexdigest()
    valid: JsonObject = {"validAfterTime": moment(call.store.now()), "validBeforeTime": _FOREVER}
    key = account.keys[key_id] = Key(key_id, {**fields, **valid, "keyType": "USER_MANAGED"})
    call.committed(_name(account, key))
    return key


def _key(call: Call, account: ServiceAccount) -> Key:
    key = account.keys.get(call.names["key"])
    if key is None:
        raise ApiError(404, f"Service account key {call.names['key'][:80]} does not exist.")
    return key


def _switched(call: Call, *, disabled: bool) -> Reply:
    account = found(call)
    key = _key(call, account)
    key.disabled = disabled
    call.committed(_name(account, key))
    return json_reply({})


def _name(account: ServiceAccount, key: Key) -> str:
    return f"{account.name}/keys/{key.id}"


def _resource(account: ServiceAccount, key: Key) -> JsonObject:
    resource: JsonObject = {"name": _name(account, key), **key.fields}
    return {**resource, "disabled": True} if key.disabled else resource
