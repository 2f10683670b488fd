"""Projects: their HMAC keys and their service account; the cloud accepts requests without checking any key."""

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import (
    NO_CONTENT,
    HttpResponse,
    JsonObject,
    condition_not_met,
    invalid,
    json_response,
    not_found,
)
from forbear_cloud.storage.conditions import check_match, is_same_etag
from forbear_cloud.storage.fields import optional_text, query_flag, text
from forbear_cloud.storage.model import HmacKey
from forbear_cloud.storage.resources import hmac_resource, storage_page


def create_key(call: ApiCall) -> HttpResponse:
    """Create an HMAC key for the service account whose email is in the query.

    Only this response contains the secret, so a client that loses the response cannot get it again.
    """
    key = call.store.create_hmac_key(call.names["project"], text(call.query, "serviceAccountEmail"))
    call.commit(key.access_id)
    return json_response({"kind": "storage#hmacKey", "metadata": _resource(call, key), "secret": key.secret})


def list_keys(call: ApiCall) -> HttpResponse:
    """List a page of the HMAC keys of the project, with showDeletedKeys=true also the deleted ones.

    With serviceAccountEmail in the query, list those of that account only.
    """
    email, deleted = call.query.get("serviceAccountEmail"), query_flag(call.query, "showDeletedKeys")
    keys = {
        key.access_id: key
        for key in call.store.hmac_keys.values()
        if key.project == call.names["project"]
        and (email is None or key.email == email)
        and (deleted or key.state != "DELETED")
    }
    return storage_page("hmacKeysMetadata", keys, lambda key: _resource(call, key), call.query)


def get_key(call: ApiCall) -> HttpResponse:
    """Read the metadata of an HMAC key, which may be deleted; respond 404 if the project never had it."""
    return json_response(_resource(call, _key(call)))


def update_key(call: ApiCall) -> HttpResponse:
    """Set the state of an HMAC key to ACTIVE or INACTIVE, and respond with its metadata.

    Respond 412 if the etag in the body or in If-Match is not the current one, and 400 if the key is deleted.
    """
    key, body = _key(call), call.body()
    etag, state = optional_text(body, "etag"), text(body, "state")
    if etag is not None and not is_same_etag(etag, key.etag):
        raise condition_not_met("etag")
    check_match(call.request.headers, key.etag)
    if state not in {"ACTIVE", "INACTIVE"} or key.state == "DELETED":
        raise invalid(f"Invalid value for state: '{state[:80]}'. A key that is not deleted can be ACTIVE or INACTIVE.")
    _set_state(call, key, state)
    return json_response(_resource(call, key))


def delete_key(call: ApiCall) -> HttpResponse:
    """Delete an inactive HMAC key and respond 204; 400 if it is active, 404 if it is deleted.

    Respond 412 if If-Match does not list its current entity tag.
    """
    key = _key(call)
    if key.state == "DELETED":
        raise not_found("The access ID")
    check_match(call.request.headers, key.etag)
    if key.state != "INACTIVE":
        raise invalid("Cannot delete keys in 'ACTIVE' state: set the state to INACTIVE first.")
    _set_state(call, key, "DELETED")
    return NO_CONTENT


def service_account(call: ApiCall) -> HttpResponse:
    """Read the email of the service account that Cloud Storage uses for the project; every project has one."""
    email = f"service-{call.names['project']}@gs-project-accounts.iam.gserviceaccount.com"
    return json_response({"kind": "storage#serviceAccount", "email_address": email})


def _key(call: ApiCall) -> HmacKey:
    """Return the HMAC key of the path, deleted or not; raise 404 if the project does not have it."""
    key = call.store.hmac_keys.get(call.names["accessId"])
    if key is None or key.project != call.names["project"]:
        raise not_found("The access ID")
    return key


def _set_state(call: ApiCall, key: HmacKey, state: str) -> None:
    key.state, key.updated = state, call.store.now()
    key.revision += 1
    call.commit(key.access_id)


def _resource(call: ApiCall, key: HmacKey) -> JsonObject:
    return hmac_resource(key, call.base)
