"""IAM: service accounts, keys, roles and policies, through the real client library and over plain HTTP."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import google.api_core.client_options
import googleapiclient.discovery
import googleapiclient.errors
import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import iam_admin_v1

from forbear_cloud import Cloud, Fault

ACCOUNTS = "/v1/projects/p/serviceAccounts"
ROLES = "/v1/projects/p/roles"
EMAIL = "worker@p.iam.gserviceaccount.com"
CREATE = "iam.projects.serviceAccounts.create"
TYPES: Any = iam_admin_v1
"""The types of the real client, whose enums mypy takes for numbers."""


@pytest.fixture
def account(http: httpx.Client) -> str:
    """Return the path of a service account."""
    made = http.post(ACCOUNTS, json={"accountId": "worker", "serviceAccount": {"displayName": "W"}})
    assert made.json()["email"] == EMAIL
    return f"{ACCOUNTS}/{EMAIL}"


def status_of(response: httpx.Response) -> tuple[int, str]:
    """Return the code and the status of an error."""
    error = response.json()["error"]
    assert error["code"] == response.status_code
    assert set(error) == {"code", "message", "status"}
    return error["code"], error["status"]


def test_the_life_of_an_account(cloud: Cloud, http: httpx.Client, account: str) -> None:
    """Accounts can be read by email and by id, changed, disabled, deleted and restored; each change is one effect."""
    read = http.get(account).json()
    assert read["name"] == f"projects/p/serviceAccounts/{EMAIL}"
    assert http.get(f"/v1/projects/-/serviceAccounts/{read['uniqueId']}").json() == read
    patched = http.patch(
        account, json={"serviceAccount": {"description": "d", "displayName": "x"}, "updateMask": "description"}
    )
    assert (patched.json()["description"], patched.json()["displayName"]) == ("d", "W")
    assert http.put(account, json={"displayName": "V"}).json()["displayName"] == "V"
    assert http.post(f"{account}:disable").json() == {}
    assert http.get(account).json()["disabled"] is True
    assert http.post(f"{account}:enable", json={}).json() == {}
    assert http.delete(account).json() == {}
    assert status_of(http.get(account)) == (404, "NOT_FOUND")
    restore = f"{ACCOUNTS}/{read['uniqueId']}:undelete"
    assert http.post(restore).json()["restoredAccount"]["email"] == EMAIL
    assert status_of(http.post(restore)) == (400, "FAILED_PRECONDITION")
    assert [effect.operation.rpartition(".")[2] for effect in cloud.effects] == [
        "create", "patch", "update", "disable", "enable", "delete", "undelete"
    ]  # fmt: skip
    assert {effect.resource for effect in cloud.effects} == {read["name"]}


def test_names_that_are_taken(http: httpx.Client, account: str) -> None:
    """An existing account cannot be created again, nor a deleted one restored once its email is taken."""
    body = {"accountId": "worker"}
    assert status_of(http.post(ACCOUNTS, json=body)) == (409, "ALREADY_EXISTS")
    first = http.get(account).json()["uniqueId"]
    http.delete(account)
    assert http.post(ACCOUNTS, json=body).json()["uniqueId"] != first
    assert status_of(http.post(f"{ACCOUNTS}/{first}:undelete")) == (409, "ALREADY_EXISTS")
    other = "/v1/projects/example.com:q/serviceAccounts"
    assert http.post(other, json=body).json()["email"] == "worker@q.example.com.iam.gserviceaccount.com"


def test_lists_of_accounts_have_pages(http: httpx.Client) -> None:
    """Lists have pages."""
    for n in range(5):
        http.post(ACCOUNTS, json={"accountId": f"worker-{n}"})
    first = http.get(f"{ACCOUNTS}?pageSize=3").json()
    second = http.get(ACCOUNTS, params={"pageSize": 3, "pageToken": first["nextPageToken"]}).json()
    assert [each["email"][:8] for each in (*first["accounts"], *second["accounts"])] == [
        f"worker-{n}" for n in range(5)
    ]
    assert "nextPageToken" not in second


def test_only_one_response_has_the_private_key(cloud: Cloud, http: httpx.Client, account: str) -> None:
    """Only one response has the private key; keys can be listed, disabled and deleted; an account has ten at most."""
    made = http.post(f"{account}/keys", json={}).json()
    secret = json.loads(base64.b64decode(made["privateKeyData"]))
    assert secret["client_email"] == EMAIL
    key = "/v1/" + made["name"]
    assert "privateKeyData" not in http.get(key).json()
    assert http.post(f"{key}:disable").json() == {}
    assert http.get(key).json()["disabled"] is True
    assert http.post(f"{key}:enable").json() == {}
    uploaded = http.post(f"{account}/keys:upload", json={"publicKeyData": "AAAA"}).json()
    assert uploaded["keyOrigin"] == "USER_PROVIDED"
    listed = http.get(f"{account}/keys").json()["keys"]
    assert [each["name"] for each in listed] == [made["name"], uploaded["name"]]
    assert http.get(f"{account}/keys?keyTypes=SYSTEM_MANAGED").json()["keys"] == []
    assert http.delete(key).json() == {}
    assert status_of(http.get(key)) == (404, "NOT_FOUND")
    while len(cloud.store.iam.account("p", EMAIL).keys) < 10:
        assert http.post(f"{account}/keys").status_code == 200
    assert status_of(http.post(f"{account}/keys")) == (400, "FAILED_PRECONDITION")
    assert cloud.effects.count("iam.projects.serviceAccounts.keys.create") == 10


def test_roles_are_changed_under_their_etag(http: httpx.Client) -> None:
    """Roles are changed under their etag, and deleted ones keep their id."""
    made = http.post(ROLES, json={"roleId": "my.role", "role": {"title": "T", "includedPermissions": ["a.b.c"]}}).json()
    role = f"{ROLES}/my.role"
    assert http.get(role).json() == made
    patched = http.patch(f"{role}?updateMask=title", json={"title": "U", "stage": "GA", "etag": made["etag"]}).json()
    assert (patched["title"], patched["includedPermissions"], "stage" in patched) == ("U", ["a.b.c"], False)
    assert status_of(http.patch(role, json={"title": "V", "etag": made["etag"]})) == (409, "ABORTED")
    assert status_of(http.delete(role, params={"etag": made["etag"]})) == (409, "ABORTED")
    assert http.delete(role, params={"etag": patched["etag"]}).json()["deleted"] is True
    assert status_of(http.delete(role)) == (400, "FAILED_PRECONDITION")
    assert status_of(http.patch(role, json={})) == (400, "FAILED_PRECONDITION")
    assert status_of(http.post(ROLES, json={"roleId": "my.role"})) == (400, "FAILED_PRECONDITION")
    assert http.get(ROLES).json()["roles"] == []
    assert "includedPermissions" not in http.get(f"{ROLES}?showDeleted=true").json()["roles"][0]
    assert http.get(f"{ROLES}?showDeleted=true&view=FULL").json()["roles"][0]["includedPermissions"] == ["a.b.c"]
    assert http.post(f"{role}:undelete").status_code == 200
    assert status_of(http.post(f"{role}:undelete")) == (400, "FAILED_PRECONDITION")
    assert status_of(http.post(ROLES, json={"roleId": "my.role"})) == (409, "ALREADY_EXISTS")
    assert status_of(http.get(f"{ROLES}/none")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "place",
    [
        "account", "/v1/projects/p", "/v3/projects/p", "/v2/folders/1", "/v3/folders/1", "/v1/organizations/1",
        "/v3/organizations/1", "/v3/tagKeys/1", "/v3/tagValues/1",
    ],
)  # fmt: skip
def test_policies_are_written_under_their_etag(cloud: Cloud, http: httpx.Client, account: str, place: str) -> None:
    """A policy is written under its etag, or overwritten without one; of two writers with one etag, one fails."""
    path = account if place == "account" else place
    policy = http.post(f"{path}:getIamPolicy").json()
    policy["bindings"].append({"role": "roles/viewer", "members": ["user:a@example.com"]})
    written = http.post(f"{path}:setIamPolicy", json={"policy": policy})
    assert written.json()["bindings"] == policy["bindings"]
    stale = http.post(f"{path}:setIamPolicy", json={"policy": policy})
    assert status_of(stale) == (409, "ABORTED")
    assert "retry the whole read-modify-write" in stale.json()["error"]["message"]
    del policy["etag"]
    assert http.post(f"{path}:setIamPolicy", json={"policy": policy}).status_code == 200
    assert sum(effect.operation.endswith("setIamPolicy") for effect in cloud.effects) == 2
    wanted = {"permissions": ["a.b.c"]}
    assert http.post(f"{path}:testIamPermissions", json=wanted).json() == wanted


def test_versions_share_a_policy(http: httpx.Client) -> None:
    """A policy is of a resource, whichever version of the API writes it, and other resources have their own."""
    policy = {"bindings": [{"role": "roles/viewer", "members": ["user:a@example.com"]}]}
    for old, new in (("/v1/projects/7", "/v3/projects/7"), ("/v2/folders/7", "/v3/folders/7")):
        assert http.post(f"{new}:getIamPolicy").json()["bindings"] == []
        assert http.post(f"{old}:setIamPolicy", json={"policy": policy}).status_code == 200
        assert http.post(f"{new}:getIamPolicy").json()["bindings"] == policy["bindings"]


def test_enums_are_accepted_by_name_and_by_number(http: httpx.Client, account: str) -> None:
    """A client may send the number of an enum value, in bodies and in queries; responses have the names."""
    algorithm = TYPES.ServiceAccountKeyAlgorithm.KEY_ALG_RSA_1024
    form = TYPES.ServiceAccountPrivateKeyType.TYPE_PKCS12_FILE
    key = http.post(f"{account}/keys", json={"keyAlgorithm": algorithm.value, "privateKeyType": form.value}).json()
    assert (key["keyAlgorithm"], key["privateKeyType"]) == (algorithm.name, form.name)
    keys = {number: http.get(f"{account}/keys?keyTypes={number}").json()["keys"] for number in (1, 2)}
    assert [len(keys[number]) for number in (1, 2)] == [1, 0]
    stage = TYPES.Role.RoleLaunchStage.DISABLED
    body = {"roleId": "abc", "role": {"stage": stage.value, "includedPermissions": ["a.b.c"]}}
    assert http.post(ROLES, json=body).json()["stage"] == stage.name
    assert ["includedPermissions" in http.get(f"{ROLES}?view={view}").json()["roles"][0] for view in (0, 1)] == [
        False,
        True,
    ]


def test_eventual_consistency(cloud: Cloud, http: httpx.Client) -> None:
    """With the fault, the first reads of a new resource fail with 404."""
    cloud.fault(Fault.lag(2), Fault.lag(1, operation="iam.projects.roles.create"))
    http.post(ACCOUNTS, json={"accountId": "worker"})
    assert http.post(ACCOUNTS, json={"accountId": "worker"}).status_code == 409
    path = f"{ACCOUNTS}/{EMAIL}"
    assert [http.get(path).status_code for _ in range(4)] == [404, 404, 200, 200]
    http.post(ROLES, json={"roleId": "role"})
    assert [http.get(f"{ROLES}/role").status_code for _ in range(3)] == [404, 200, 200]
    cloud.fault(Fault.lag(2))
    assert http.post(ACCOUNTS, json={"accountId": "worker"}).status_code == 409
    assert http.get(path).status_code == 200
    assert cloud.requests[-2].fault == "lag after"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", ACCOUNTS, {}),
        ("POST", ACCOUNTS, {"accountId": "UPPER-CASE"}),
        ("POST", ACCOUNTS, {"accountId": "worker2", "serviceAccount": {"displayName": 5}}),
        ("POST", ACCOUNTS, []),
        ("PATCH", f"{ACCOUNTS}/{EMAIL}", {"serviceAccount": {}, "updateMask": "email"}),
        ("PATCH", f"{ACCOUNTS}/{EMAIL}", {"serviceAccount": {}}),
        ("POST", f"{ACCOUNTS}/{EMAIL}/keys", {"keyAlgorithm": "ROT13"}),
        ("POST", f"{ACCOUNTS}/{EMAIL}/keys:upload", {"publicKeyData": "?"}),
        ("GET", f"{ACCOUNTS}/{EMAIL}/keys?keyTypes=x", None),
        ("GET", f"{ACCOUNTS}?pageSize=-1", None),
        ("POST", ROLES, {"roleId": "a b"}),
        ("POST", ROLES, {"roleId": "abc", "role": {"stage": "X"}}),
        ("POST", ROLES, {"roleId": "abc", "role": {"includedPermissions": [1]}}),
        ("PATCH", f"{ROLES}/abc?updateMask=name", {}),
        ("POST", "/v1/projects/p:setIamPolicy", {}),
        ("POST", "/v1/projects/p:setIamPolicy", {"policy": {"bindings": [{"role": "r", "members": "x"}]}}),
        ("POST", "/v1/projects/p:setIamPolicy", {"policy": {"etag": 5}}),
        ("POST", "/v1/projects/p:testIamPermissions", {"permissions": "x"}),
    ],
)
def test_bad_requests(cloud: Cloud, http: httpx.Client, account: str, method: str, path: str, body: object) -> None:
    """Invalid requests are refused in the form of the API, and change nothing."""
    if method == "PATCH":
        http.post(ROLES, json={"roleId": "abc"})
    before = cloud.effects.total
    response = http.request(method, path, json=body) if body is not None else http.request(method, path)
    assert status_of(response) == (400, "INVALID_ARGUMENT")
    assert cloud.effects.total == before


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/projects/p:fly", 404),
        ("GET", "/v1/projects/p:getIamPolicy", 405),
        ("POST", "/v1/projects/p/roles/none:undelete", 404),
        ("GET", f"{ACCOUNTS}/nobody@example.com", 404),
        ("POST", f"{ACCOUNTS}/1:undelete", 404),
        ("GET", f"{ACCOUNTS}/{EMAIL}/keys/none", 404),
    ],
)
def test_a_missing_resource_is_404(http: httpx.Client, account: str, method: str, path: str, status: int) -> None:
    """Unknown paths, verbs and resources get errors in the form of the API."""
    assert status_of(http.request(method, path))[0] == status


def test_faults_speak_the_language_of_the_api(cloud: Cloud, http: httpx.Client) -> None:
    """An injected error has the status that the API would send, or the one that the fault names."""
    cloud.fault(Fault.status(503), Fault.status(409, reason="ABORTED"), Fault.status(429, reason="rateLimitExceeded"))
    errors = [status_of(http.get(ACCOUNTS)) for _ in range(3)]
    assert errors == [(503, "UNAVAILABLE"), (409, "ABORTED"), (429, "RESOURCE_EXHAUSTED")]


@pytest.fixture
def iam(cloud: Cloud) -> Iterator[Any]:
    """Return the real client library, connected to the cloud."""
    with googleapiclient.discovery.build(
        "iam",
        "v1",
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options=google.api_core.client_options.ClientOptions(api_endpoint=cloud.url),
        static_discovery=True,
    ) as client:
        yield client.projects()


def test_the_real_client(cloud: Cloud, iam: Any) -> None:
    """google-api-python-client works against the cloud: accounts, keys, policies and errors."""
    accounts = iam.serviceAccounts()
    made = accounts.create(name="projects/p", body={"accountId": "worker"}).execute()
    assert accounts.list(name="projects/p").execute()["accounts"] == [made]
    key = accounts.keys().create(name=made["name"], body={}).execute()
    accounts.keys().delete(name=key["name"]).execute()
    policy = accounts.getIamPolicy(resource=made["name"]).execute()
    accounts.setIamPolicy(resource=made["name"], body={"policy": policy}).execute()
    with pytest.raises(googleapiclient.errors.HttpError, match="concurrent policy changes") as raised:
        accounts.setIamPolicy(resource=made["name"], body={"policy": policy}).execute()
    assert raised.value.status_code == 409
    accounts.delete(name=made["name"]).execute()
    assert iam.roles().list(parent="projects/p").execute() == {"roles": []}
