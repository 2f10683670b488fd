"""HMAC keys, the service account and notification configurations."""

import httpx
import pytest

from forbear_cloud import Cloud

KEYS = "/storage/v1/projects/p/hmacKeys"


def test_key_life(cloud: Cloud, http: httpx.Client) -> None:
    """A key must be inactive before it is deleted, and is then listed only with showDeletedKeys."""
    made = http.post(f"{KEYS}?serviceAccountEmail=a@b.c").json()
    key = f"{KEYS}/{made['metadata']['accessId']}"
    assert made["secret"]
    assert http.get(key).json() == made["metadata"]
    assert http.delete(key).status_code == 400
    assert http.put(key, json={"state": "INACTIVE"}).json()["state"] == "INACTIVE"
    assert http.delete(key).status_code == 204
    assert http.delete(key).status_code == 404
    assert http.put(key, json={"state": "ACTIVE"}).status_code == 400
    assert http.get(key).json()["state"] == "DELETED"
    assert "items" not in http.get(KEYS).json()
    assert len(http.get(f"{KEYS}?showDeletedKeys=true").json()["items"]) == 1
    assert len(cloud.effects) == 3


def test_key_etag(http: httpx.Client) -> None:
    """An update that names an etag works once."""
    made = http.post(f"{KEYS}?serviceAccountEmail=a@b.c").json()["metadata"]
    body = {"state": "INACTIVE", "etag": made["etag"]}
    assert [http.put(f"{KEYS}/{made['accessId']}", json=body).status_code for _ in range(2)] == [200, 412]


def test_key_refusals(http: httpx.Client) -> None:
    """A key needs a service account, and an update a known state."""
    assert http.post(KEYS).status_code == 400
    assert http.get(f"{KEYS}/nope").status_code == 404
    key = http.post(f"{KEYS}?serviceAccountEmail=a@b.c").json()["metadata"]["accessId"]
    assert http.put(f"{KEYS}/{key}", json={"state": "DELETED"}).status_code == 400
    assert http.put(f"{KEYS}/{key}", json={}).status_code == 400
    assert http.get(f"/storage/v1/projects/other/hmacKeys/{key}").status_code == 404
    assert http.get(f"{KEYS}?showDeletedKeys=perhaps").status_code == 400


def test_every_key_is_new(http: httpx.Client) -> None:
    """A repeated creation makes another key; keys are listed by account."""
    for email in ("a@b.c", "a@b.c", "d@e.f"):
        http.post(KEYS, params={"serviceAccountEmail": email})
    assert len({item["accessId"] for item in http.get(KEYS).json()["items"]}) == 3
    assert len(http.get(f"{KEYS}?serviceAccountEmail=a@b.c").json()["items"]) == 2


def test_service_account(http: httpx.Client) -> None:
    """A project has a service account."""
    assert "p" in http.get("/storage/v1/projects/p/serviceAccount").json()["email_address"]


def test_notifications_can_be_added_listed_and_deleted(cloud: Cloud, http: httpx.Client) -> None:
    """Each insert adds another configuration; configurations can be listed, read and deleted once."""
    path, body = "/storage/v1/b/bkt/notificationConfigs", {"topic": "//pubsub/t", "payload_format": "NONE"}
    first, second = (http.post(path, json=body).json() for _ in range(2))
    assert first["id"] != second["id"]
    assert http.get(f"{path}/{first['id']}").json() == first
    assert http.get(path).json()["items"] == [first, second]
    assert [http.delete(f"{path}/{first['id']}").status_code for _ in range(2)] == [204, 404]
    assert len(cloud.effects) == 3


@pytest.mark.parametrize("body", [{}, {"topic": "t"}, {"topic": "t", "payload_format": "XML"}, {"topic": 5}])
def test_bad_notifications(http: httpx.Client, body: object) -> None:
    """A configuration needs a topic and a payload format."""
    assert http.post("/storage/v1/b/bkt/notificationConfigs", json=body).status_code == 400
