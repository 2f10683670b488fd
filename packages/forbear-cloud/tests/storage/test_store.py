"""Soft delete: deleted objects and buckets can be listed and restored until their period ends."""

import httpx
import pytest

from forbear_cloud import Cloud

WEEK = 7 * 86_400
OBJECT = "/storage/v1/b/soft/o/o"


@pytest.fixture
def soft(cloud: Cloud, http: httpx.Client) -> Cloud:
    """Return a cloud with a bucket that keeps deleted objects for a week."""
    body = {"name": "soft", "softDeletePolicy": {"retentionDurationSeconds": str(WEEK)}}
    assert http.post("/storage/v1/b?project=p", json=body).status_code == 200
    return cloud


def deleted(http: httpx.Client) -> list[str]:
    """Return the generations that can be restored."""
    return [item["generation"] for item in http.get("/storage/v1/b/soft/o?softDeleted=true").json().get("items", [])]


def test_a_deleted_version_can_be_restored(soft: Cloud, http: httpx.Client) -> None:
    """A deleted and an overwritten version can be restored, as new live generations."""
    generations = [http.put("/soft/o", content=data).headers["x-goog-generation"] for data in (b"one", b"two")]
    assert http.delete(OBJECT).status_code == 204
    assert http.get(OBJECT).status_code == 404
    assert deleted(http) == generations
    resource = http.get(f"{OBJECT}?softDeleted=true&generation={generations[0]}").json()
    assert {"softDeleteTime", "hardDeleteTime"} <= resource.keys()
    assert http.get(f"{OBJECT}?softDeleted=true").status_code == 400
    assert http.get(f"{OBJECT}?softDeleted=true&alt=media&generation={generations[0]}").status_code == 400
    restore = f"{OBJECT}/restore?generation={generations[0]}"
    assert http.post(f"{OBJECT}/restore").status_code == 400
    assert http.post(f"{OBJECT}/restore?generation=1").status_code == 404
    assert http.post(f"{restore}&ifGenerationMatch=1").status_code == 412
    live = http.post(f"{restore}&ifGenerationMatch=0&copySourceAcl=true").json()
    assert live["generation"] > generations[1]
    assert http.get("/soft/o").content == b"one"
    assert http.post(f"{restore}&ifGenerationMatch=0").status_code == 412
    assert soft.effects.count("storage.objects.restore") == 1
    assert http.get("/storage/v1/b/soft/o?softDeleted=true&versions=true").status_code == 400
    assert http.post("/storage/v1/b/soft/o/bulkRestore", json={}).status_code == 501


def test_time_is_over(soft: Cloud, http: httpx.Client) -> None:
    """After the period, nothing can be restored."""
    generation = http.put("/soft/o", content=b"x").headers["x-goog-generation"]
    http.delete(OBJECT)
    now = soft.store.now()
    soft.store.now = lambda: now + WEEK + 1
    assert http.post(f"{OBJECT}/restore?generation={generation}").status_code == 404
    assert deleted(http) == []
    assert soft.store.bucket("soft").deleted_objects == []


def test_only_versions_deleted_for_good_are_soft_deleted(soft: Cloud, http: httpx.Client) -> None:
    """In a versioned bucket, only versions deleted for good are soft-deleted."""
    http.patch("/storage/v1/b/soft", json={"versioning": {"enabled": True}})
    generation = http.put("/soft/o", content=b"x").headers["x-goog-generation"]
    http.delete(OBJECT)
    assert deleted(http) == []
    http.delete(f"{OBJECT}?generation={generation}")
    assert deleted(http) == [generation]


def test_a_deleted_bucket_can_be_restored_once(soft: Cloud, http: httpx.Client) -> None:
    """A deleted bucket can be restored once, with its generation, unless its name is taken."""
    generation = http.get("/storage/v1/b/soft").json()["generation"]
    http.put("/soft/o", content=b"x")
    http.delete(OBJECT)
    assert http.delete("/storage/v1/b/soft").status_code == 204
    assert http.get("/storage/v1/b/soft").status_code == 404
    listed = http.get("/storage/v1/b?project=p&softDeleted=true").json()["items"]
    assert [(each["name"], each["generation"]) for each in listed] == [("soft", generation)]
    assert "hardDeleteTime" in http.get(f"/storage/v1/b/soft?softDeleted=true&generation={generation}").json()
    restore = f"/storage/v1/b/soft/restore?generation={generation}"
    assert http.post("/storage/v1/b/soft/restore").status_code == 400
    http.post("/storage/v1/b?project=p", json={"name": "soft"})
    assert http.post(restore).status_code == 409
    http.delete("/storage/v1/b/soft")
    assert http.post(restore).json()["generation"] == generation
    assert http.post(restore).status_code == 404
    assert len(deleted(http)) == 1
    assert soft.effects.count("storage.buckets.restore") == 1


def test_without_a_policy_nothing_can_be_restored(cloud: Cloud, http: httpx.Client) -> None:
    """Without a policy, or with one that is off, deleted objects cannot be restored."""
    assert (
        http.patch("/storage/v1/b/bkt", json={"softDeletePolicy": {"retentionDurationSeconds": 0}}).status_code == 200
    )
    http.put("/bkt/o", content=b"x")
    http.delete("/bkt/o")
    assert cloud.store.bucket("bkt").deleted_objects == []


@pytest.mark.parametrize("seconds", [1, -1, "x", 91 * 86_400])
def test_bad_policies(http: httpx.Client, seconds: object) -> None:
    """A policy has a duration from 7 to 90 days."""
    body = {"softDeletePolicy": {"retentionDurationSeconds": seconds}}
    assert http.patch("/storage/v1/b/bkt", json=body).status_code == 400
