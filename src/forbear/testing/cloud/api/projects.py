"""What belongs to a project: its HMAC keys and its service account; the keys open nothing."""

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.errors import condition_not_met, invalid, not_found, required
from forbear.testing.cloud.http.messages import NO_CONTENT, Reply, json_reply
from forbear.testing.cloud.storage.conditions import check_match, same_etag
from forbear.testing.cloud.storage.fields import page, query_flag, text
from forbear.testing.cloud.storage.model import HmacKey
from forbear.testing.cloud.storage.resources import hmac_resource, listing


def create_key(call: Call) -> Reply:
    """Make a key; the secret is in this reply and nowhere else, so a lost reply loses it."""
    email = call.query.get("serviceAccountEmail")
    if not email:
        raise required("serviceAccountEmail")
    key = call.store.create_hmac_key(call.names["project"], email)
    call.committed(key.access_id)
    return json_reply({"kind": "storage#hmacKey", "metadata": hmac_resource(key, call.base), "secret": key.secret})


def list_keys(call: Call) -> Reply:
    """List the keys of the project; deleted ones only when asked for."""
    email, deleted = call.query.get("serviceAccountEmail"), query_flag(call.query, "showDeletedKeys")
    keys = call.store.hmac_keys
    ids = sorted(
        key.access_id
        for key in keys.values()
        if key.project == call.names["project"]
        and (email is None or key.email == email)
        and (deleted or key.state != "DELETED")
    )
    shown, token = page(ids, call.query)
    return json_reply(listing("hmacKeysMetadata", [hmac_resource(keys[each], call.base) for each in shown], token))


def get_key(call: Call) -> Reply:
    """Read the metadata of a key, deleted ones included."""
    return json_reply(hmac_resource(_key(call), call.base))


def update_key(call: Call) -> Reply:
    """Change the state of a key; 412 when the body's etag is not the current one."""
    key, body = _key(call), call.body()
    etag, state = body.get("etag"), text(body, "state")
    if etag is not None and not (isinstance(etag, str) and same_etag(etag, key.etag)):
        raise condition_not_met("etag")
    check_match(call.request.headers, key.etag)
    if state not in {"ACTIVE", "INACTIVE"} or key.state == "DELETED":
        raise invalid(f"Invalid value for state: '{state[:80]}'. A key that is not deleted can be ACTIVE or INACTIVE.")
    key.state, key.updated = state, call.store.now()
    key.revision += 1
    call.committed(key.access_id)
    return json_reply(hmac_resource(key, call.base))


def delete_key(call: Call) -> Reply:
    """Delete an inactive key."""
    key = _key(call)
    if key.state == "DELETED":
        raise not_found("The access ID")
    check_match(call.request.headers, key.etag)
    if key.state != "INACTIVE":
        raise invalid("Cannot delete keys in 'ACTIVE' state: set the state to INACTIVE first.")
    key.state, key.updated = "DELETED", call.store.now()
    key.revision += 1
    call.committed(key.access_id)
    return NO_CONTENT


def service_account(call: Call) -> Reply:
    """The service account that the cloud uses for the project."""
    email = f"service-{call.names['project']}@gs-project-accounts.iam.gserviceaccount.com"
    return json_reply({"kind": "storage#serviceAccount", "email_address": email})


def _key(call: Call) -> HmacKey:
    key = call.store.hmac_keys.get(call.names["accessId"])
    if key is None or key.project != call.names["project"]:
        raise not_found("The access ID")
    return key
