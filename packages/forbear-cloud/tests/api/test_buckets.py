"""Buckets: create, read, change, list, lock and delete them."""

import httpx
import pytest

from forbear_cloud import Cloud


def test_insert_get_delete(cloud: Cloud, http: httpx.Client) -> None:
    """A new bucket has its metadata, can be read, and is gone after its deletion."""
    made = http.post("/storage/v1/b?project=p", json={"name": "fresh", "location": "EU", "labels": {"a": "b"}})
    assert made.status_code == 200
    assert made.json()["location"] == "EU"
    assert made.json()["metageneration"] == "1"
    assert http.get("/storage/v1/b/fresh").json() == made.json()
    assert http.delete("/storage/v1/b/fresh").status_code == 204
    assert http.get("/storage/v1/b/fresh").status_code == 404
    assert [(effect.operation, effect.resource) for effect in cloud.effects] == [
        ("storage.buckets.insert", "fresh"),
        ("storage.buckets.delete", "fresh"),
    ]


@pytest.mark.parametrize(
    ("query", "body", "reason"),
    [
        ("", {"name": "fresh"}, "required"),
        ("?project=p", {}, "required"),
        ("?project=p", {"name": 5}, "invalid"),
        ("?project=p", {"name": "UPPER"}, "invalid"),
        ("?project=p", {"name": "a/b"}, "invalid"),
        ("?project=p", {"name": "fresh", "labels": ["x"]}, "invalid"),
        ("?project=p", {"name": "fresh", "labels": {"x": 1}}, "invalid"),
        ("?project=p&predefinedAcl=open", {"name": "fresh"}, "invalid"),
    ],
)
def test_insert_refuses(cloud: Cloud, http: httpx.Client, query: str, body: object, reason: str) -> None:
    """An invalid bucket is refused with the reason, and not created."""
    response = http.post(f"/storage/v1/b{query}", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["errors"][0]["reason"] == reason
    assert "fresh" not in cloud.store.buckets
    assert len(cloud.effects) == 0


def test_insert_twice_conflicts(http: httpx.Client) -> None:
    """A name can be used once."""
    assert http.post("/storage/v1/b?project=p", json={"name": "bkt"}).status_code == 409


def test_delete_refuses_a_full_bucket(cloud: Cloud, http: httpx.Client) -> None:
    """A bucket with an object in it cannot be deleted."""
    cloud.store.put("bkt", "o", b"x")
    assert http.delete("/storage/v1/b/bkt").status_code == 409


def test_patch_merges_and_update_replaces(http: httpx.Client) -> None:
    """A patch keeps the fields that it does not name and removes those that are null; an update keeps none."""
    http.patch("/storage/v1/b/bkt", json={"labels": {"a": "1", "b": "2"}, "rpo": "DEFAULT"})
    patched = http.patch("/storage/v1/b/bkt", json={"labels": {"a": None, "c": "3"}}).json()
    assert patched["labels"] == {"b": "2", "c": "3"}
    assert patched["rpo"] == "DEFAULT"
    assert patched["metageneration"] == "3"
    updated = http.put("/storage/v1/b/bkt", json={"storageClass": "NEARLINE"}).json()
    assert "labels" not in updated
    assert updated["storageClass"] == "NEARLINE"


def test_a_storage_class_that_does_not_exist_is_refused(cloud: Cloud, http: httpx.Client) -> None:
    """Of buckets and of objects."""
    cloud.store.put("bkt", "o", b"x")
    for path in ("b/bkt", "b/bkt/o/o"):
        refused = http.patch(f"/storage/v1/{path}", json={"storageClass": "COLD"})
        assert (refused.status_code, "'COLD' is no storage class" in refused.text) == (400, True)


def test_metageneration_guards_a_patch(cloud: Cloud, http: httpx.Client) -> None:
    """Of two patches with the same metageneration, the second fails and changes nothing."""
    first = http.patch("/storage/v1/b/bkt?ifMetagenerationMatch=1", json={"labels": {"a": "1"}})
    second = http.patch("/storage/v1/b/bkt?ifMetagenerationMatch=1", json={"labels": {"a": "2"}})
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["error"]["errors"][0]["reason"] == "conditionNotMet"
    assert cloud.store.bucket("bkt").fields["labels"] == {"a": "1"}


def test_list_in_pages(cloud: Cloud, http: httpx.Client) -> None:
    """The pages of a listing contain every bucket of the project and prefix once."""
    for number in range(5):
        cloud.store.create_bucket(f"many-{number}")
    cloud.store.create_bucket("many-x", project="other")
    names, token = list[str](), ""
    while True:
        page = http.get(f"/storage/v1/b?project=p&prefix=many&maxResults=2&pageToken={token}").json()
        assert len(page["items"]) <= 2
        names += [item["name"] for item in page["items"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert names == [f"many-{number}" for number in range(5)]


def test_lock_retention_policy_succeeds_once(http: httpx.Client) -> None:
    """The lock requires the metageneration, and a repeated request fails with 412."""
    assert http.post("/storage/v1/b/bkt/lockRetentionPolicy").status_code == 400
    assert http.post("/storage/v1/b/bkt/lockRetentionPolicy?ifMetagenerationMatch=1").status_code == 400
    http.patch("/storage/v1/b/bkt", json={"retentionPolicy": {"retentionPeriod": "60"}})
    locked = http.post("/storage/v1/b/bkt/lockRetentionPolicy?ifMetagenerationMatch=2")
    assert locked.json()["retentionPolicy"]["isLocked"] is True
    assert http.post("/storage/v1/b/bkt/lockRetentionPolicy?ifMetagenerationMatch=2").status_code == 412


def test_projection_full_shows_access_controls(http: httpx.Client) -> None:
    """Access controls appear only with projection=full."""
    assert "acl" not in http.get("/storage/v1/b/bkt").json()
    full = http.get("/storage/v1/b/bkt?projection=full").json()
    assert {entry["entity"] for entry in full["acl"]} >= {"project-owners-p"}
    assert full["defaultObjectAcl"]
