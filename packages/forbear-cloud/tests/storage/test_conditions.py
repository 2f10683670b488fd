"""Preconditions: each one is checked, 0 is a value, and reads and writes fail with different statuses."""

import httpx
import pytest

from forbear_cloud import Cloud

UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"
OBJECT = "/storage/v1/b/bkt/o/o"


def test_generation_zero_means_must_not_exist(cloud: Cloud, http: httpx.Client) -> None:
    """Of two uploads with ifGenerationMatch=0, the first creates the object and the second fails."""
    assert http.post(f"{UPLOAD}&ifGenerationMatch=0", content=b"1").status_code == 200
    assert http.post(f"{UPLOAD}&ifGenerationMatch=0", content=b"2").status_code == 412
    assert cloud.store.object("bkt", "o").data == b"1"
    assert cloud.effects.count("storage.objects.insert", "bkt/o") == 1


@pytest.mark.parametrize(
    ("name", "value", "write", "read"),
    [
        ("ifGenerationMatch", "same", 200, 200),
        ("ifGenerationMatch", "other", 412, 412),
        ("ifGenerationMatch", "0", 412, 412),
        ("ifGenerationNotMatch", "same", 412, 304),
        ("ifGenerationNotMatch", "other", 200, 200),
        ("ifGenerationNotMatch", "0", 200, 200),
        ("ifMetagenerationMatch", "1", 200, 200),
        ("ifMetagenerationMatch", "2", 412, 412),
        ("ifMetagenerationNotMatch", "1", 412, 304),
        ("ifMetagenerationNotMatch", "2", 200, 200),
        ("ifGenerationMatch", "one", 400, 400),
        ("ifGenerationMatch", "", 400, 400),
        ("ifGenerationMatch", "--1", 400, 400),
        ("ifMetagenerationNotMatch", "1.5", 400, 400),
        ("ifGenerationMatch", "9" * 40, 400, 400),
    ],
)
def test_each_condition(cloud: Cloud, http: httpx.Client, name: str, value: str, write: int, read: int) -> None:
    """Each condition allows or refuses a read and a write: with 412 a write, with 304 or 412 a read."""
    generation = cloud.store.put("bkt", "o", b"x").generation
    query = {name: value.replace("same", str(generation)).replace("other", "7")}
    assert http.get(OBJECT, params=query).status_code == read
    assert http.get(OBJECT, params={**query, "alt": "media"}).status_code == read
    assert http.patch(OBJECT, params=query, json={"metadata": {"a": "b"}}).status_code == write
    assert len(cloud.effects) == (1 if write == 200 else 0)


@pytest.mark.parametrize("name", ["ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch"])
def test_an_absent_object_meets_only_generation_zero(cloud: Cloud, http: httpx.Client, name: str) -> None:
    """Without a live object, every condition but ifGenerationMatch=0 fails."""
    assert http.post(f"{UPLOAD}&{name}=5", content=b"1").status_code == 412
    assert len(cloud.effects) == 0


def test_delete_with_a_stale_generation(cloud: Cloud, http: httpx.Client) -> None:
    """A deletion with an old generation in its condition does not delete the new one."""
    old = cloud.store.put("bkt", "o", b"old").generation
    cloud.store.put("bkt", "o", b"new")
    assert http.delete(f"{OBJECT}?ifGenerationMatch={old}").status_code == 412
    assert http.delete(f"{OBJECT}?generation={old}").status_code == 404
    assert cloud.store.object("bkt", "o").data == b"new"


def test_etag_headers_guard_reads(cloud: Cloud, http: httpx.Client) -> None:
    """If-Match and If-None-Match decide reads, with quotes or without; writes ignore If-None-Match."""
    etag = cloud.store.put("bkt", "o", b"x").etag
    assert http.get(OBJECT, headers={"If-Match": etag}).status_code == 200
    assert http.get(OBJECT, headers={"If-Match": f'"{etag}", "z"'}).status_code == 200
    assert http.get(OBJECT, headers={"If-Match": '"z"'}).status_code == 412
    unchanged = http.get(OBJECT, headers={"If-None-Match": f'W/"{etag}"'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == etag
    assert http.get(OBJECT, headers={"If-None-Match": "*"}).status_code == 304
    assert http.patch(OBJECT, headers={"If-None-Match": f'"{etag}"'}, json={}).status_code == 200


WRITES = {
    "objects.patch": ("PATCH", OBJECT, {"metadata": {"a": "b"}}),
    "objects.update": ("PUT", OBJECT, {"metadata": {"a": "b"}}),
    "objects.setIamPolicy": ("PUT", f"{OBJECT}/iam", {"bindings": []}),
    "objects.delete": ("DELETE", OBJECT, None),
    "buckets.patch": ("PATCH", "/storage/v1/b/bkt", {"labels": {"a": "b"}}),
    "buckets.update": ("PUT", "/storage/v1/b/bkt", {"labels": {"a": "b"}}),
    "buckets.setIamPolicy": ("PUT", "/storage/v1/b/bkt/iam", {"bindings": []}),
    "projects.hmacKeys.update": ("PUT", "/storage/v1/projects/p/hmacKeys/KEY", {"state": "INACTIVE"}),
}


@pytest.mark.parametrize("operation", WRITES)
def test_if_match_guards_a_write(cloud: Cloud, http: httpx.Client, operation: str) -> None:
    """Only the current strong tag allows a write: quoted or bare, in a list, or as `*`."""
    cloud.store.put("bkt", "o", b"x")
    key = cloud.store.create_hmac_key("p", "a@b").access_id
    method, path, body = WRITES[operation]
    path = path.replace("KEY", key)
    tag = http.get(path).json()["etag"]
    for stale in ('"other"', f'W/"{tag}"', f'"other", W/"{tag}"', '""', ""):
        assert http.request(method, path, json=body, headers={"If-Match": stale}).status_code == 412, stale
    assert len(cloud.effects) == 0
    if body is None:
        assert http.delete(path, headers={"If-Match": "*"}).status_code == 204
        return
    for number, fresh in enumerate(('"{}"', "{}", '"other", "{}"', "*"), 1):
        tag = http.get(path).json()["etag"]
        assert http.request(method, path, json=body, headers={"If-Match": fresh.format(tag)}).status_code == 200, fresh
        assert len(cloud.effects) == number
