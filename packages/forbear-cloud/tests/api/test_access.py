"""Access control lists and IAM policies: stored and guarded by etags, but never enforced."""

import httpx
import pytest

from forbear_cloud import Cloud


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/storage/v1/b/bkt/acl", "bucketAccessControl"),
        ("/storage/v1/b/bkt/defaultObjectAcl", "objectAccessControl"),
        ("/storage/v1/b/bkt/o/a%2Fb/acl", "objectAccessControl"),
    ],
)
def test_entries_of_access_can_be_changed(cloud: Cloud, http: httpx.Client, path: str, kind: str) -> None:
    """Entries can be added, read, changed, listed and removed; a change is one effect and raises the metageneration."""
    cloud.store.put("bkt", "a/b", b"x")
    made = http.post(path, json={"entity": "allUsers", "role": "READER"})
    assert (made.status_code, made.json()["kind"]) == (200, f"storage#{kind}")
    assert http.get(f"{path}/allUsers").json() == made.json()
    assert http.patch(f"{path}/allUsers", json={"role": "OWNER"}).json()["role"] == "OWNER"
    assert http.put(f"{path}/allUsers", json={"role": "READER"}).json()["role"] == "READER"
    assert "allUsers" in [entry["entity"] for entry in http.get(path).json()["items"]]
    assert http.delete(f"{path}/allUsers").status_code == 204
    for response in (http.get(f"{path}/allUsers"), http.delete(f"{path}/allUsers")):
        assert response.status_code == 404
    assert http.patch(f"{path}/allUsers", json={"role": "OWNER"}).status_code == 404
    assert http.post(path, json={"entity": "allUsers"}).status_code == 400
    assert len(cloud.effects) == 4
    owner = cloud.store.object("bkt", "a/b") if "/o/" in path else cloud.store.bucket("bkt")
    assert owner.metageneration == 5


def test_uniform_access_refuses_entries(http: httpx.Client) -> None:
    """With uniform bucket-level access, every request about entries fails."""
    uniform = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}
    http.patch("/storage/v1/b/bkt", json=uniform)
    assert http.get("/storage/v1/b/bkt/acl").status_code == 400


def test_predefined_lists(cloud: Cloud, http: httpx.Client) -> None:
    """A predefined list replaces the entries."""
    cloud.store.put("bkt", "o", b"x")
    response = http.patch("/storage/v1/b/bkt/o/o?predefinedAcl=publicRead&projection=full", json={})
    entries = {entry["entity"]: entry["role"] for entry in response.json()["acl"]}
    assert entries == {"project-owners-p": "OWNER", "allUsers": "READER"}
    http.patch("/storage/v1/b/bkt?predefinedAcl=private&predefinedDefaultObjectAcl=authenticatedRead", json={})
    assert cloud.store.bucket("bkt").acl == {"project-owners-p": "OWNER"}
    assert "allAuthenticatedUsers" in cloud.store.bucket("bkt").default_acl


def test_an_empty_list_clears_the_entries(cloud: Cloud, http: httpx.Client) -> None:
    """The bucket keeps that of its owner, whom its resource names."""
    cloud.store.put("bkt", "o", b"x")
    bucket = http.patch("/storage/v1/b/bkt?projection=full", json={"acl": [], "defaultObjectAcl": []}).json()
    assert [(entry["entity"], entry["role"]) for entry in bucket["acl"]] == [("project-owners-p", "OWNER")]
    assert (bucket["owner"], bucket["defaultObjectAcl"]) == ({"entity": "project-owners-p"}, [])
    assert http.patch("/storage/v1/b/bkt/o/o?projection=full", json={"acl": []}).json()["acl"] == []


@pytest.mark.parametrize("path", ["/storage/v1/b/bkt/iam", "/storage/v1/b/bkt/o/o/iam"])
def test_a_policy_is_written_under_its_etag(cloud: Cloud, http: httpx.Client, path: str) -> None:
    """A policy is written under its etag: if two writers have read the same policy, the second write fails."""
    cloud.store.put("bkt", "o", b"x")
    policy = http.get(path).json()
    policy["bindings"].append({"role": "roles/storage.objectViewer", "members": ["user:a@example.com"]})
    assert http.put(path, json=policy).status_code == 200
    assert http.put(path, json=policy).status_code == 412
    assert http.get(path).json()["bindings"] == policy["bindings"]
    del policy["etag"]
    assert http.put(path, json=policy).status_code == 200
    assert len(cloud.effects) == 2


@pytest.mark.parametrize("body", [{"etag": 5}, {"bindings": {}}, {"bindings": [{}]}, {"bindings": ["x"]}])
def test_bad_policies(cloud: Cloud, http: httpx.Client, body: object) -> None:
    """A policy of the wrong shape is refused."""
    assert http.put("/storage/v1/b/bkt/iam", json=body).status_code == 400
    assert len(cloud.effects) == 0


def test_every_permission_is_granted(http: httpx.Client) -> None:
    """Every permission in a test of permissions is granted."""
    path = "/storage/v1/b/bkt/iam/testPermissions"
    assert http.get(f"{path}?permissions=a&permissions=b").json()["permissions"] == ["a", "b"]
    assert http.get(path).status_code == 400
