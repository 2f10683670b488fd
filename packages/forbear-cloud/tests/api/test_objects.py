"""Objects: names, metadata, versions, listing and deletion."""

import json
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud
from forbear_cloud.storage.listing import list_objects
from forbear_cloud.storage.model import Bucket
from forbear_cloud.storage.store import Store


@pytest.mark.parametrize(
    "name", ["a/b", "träume/日本.txt", "a%2Fb", "a b?c#d", "acl", "..a", "a/../b", "/a//b/", " a\t", "x" * 1024]
)
def test_any_percent_encoded_name_is_stored_unchanged(cloud: Cloud, http: httpx.Client, name: str) -> None:
    """Any name comes back unchanged if it is percent-encoded as one segment of the path."""
    made = http.post("/upload/storage/v1/b/bkt/o", params={"uploadType": "media", "name": name}, content=b"x")
    assert made.json()["name"] == name
    path = f"/storage/v1/b/bkt/o/{quote(name, safe='')}"
    assert http.get(path).json()["name"] == name
    assert http.get(made.json()["mediaLink"]).content == b"x"
    assert http.get(made.json()["selfLink"]).json()["name"] == name
    assert http.delete(path).status_code == 204
    assert not cloud.store.bucket("bkt").objects


@pytest.mark.parametrize("name", ["", ".", "..", "a\nb", "a\rb", "x" * 1025, ".well-known/acme-challenge/x"])
def test_bad_names(cloud: Cloud, http: httpx.Client, name: str) -> None:
    """Names that the service refuses are refused."""
    made = http.post("/upload/storage/v1/b/bkt/o", params={"uploadType": "media", "name": name}, content=b"x")
    assert made.status_code == 400
    assert len(cloud.effects) == 0


def test_a_patch_merges_and_an_update_replaces(cloud: Cloud, http: httpx.Client) -> None:
    """A patch merges, an update replaces; both raise the metageneration and keep the generation."""
    item = cloud.store.put("bkt", "o", b"hello", {"contentType": "text/plain", "metadata": {"a": "1"}})
    patched = http.patch("/storage/v1/b/bkt/o/o", json={"metadata": {"b": "2"}, "size": "9", "name": "z"}).json()
    assert patched["metadata"] == {"a": "1", "b": "2"}
    assert (patched["size"], patched["name"], patched["metageneration"]) == ("5", "o", "2")
    updated = http.put("/storage/v1/b/bkt/o/o", json={"cacheControl": "no-cache"}).json()
    assert "metadata" not in updated
    assert updated["generation"] == str(item.generation)
    assert updated["etag"] != patched["etag"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"x"',
        b'{"metadata": 5}',
        b'{"metadata": {"a": NaN}}',
        b"[" * 5000,
        b'{"a":' * 200 + b"5" + b"}" * 200,
    ],
)
def test_bad_bodies(cloud: Cloud, http: httpx.Client, body: bytes) -> None:
    """A body that is not the expected JSON gets a 400 in the API's own form."""
    cloud.store.put("bkt", "o", b"x")
    response = http.patch("/storage/v1/b/bkt/o/o", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == 400


def test_overwriting_raises_the_generation(cloud: Cloud, http: httpx.Client) -> None:
    """Without versioning only the newest generation exists, and its metageneration is 1."""
    first = cloud.store.put("bkt", "o", b"1")
    http.patch("/storage/v1/b/bkt/o/o", json={})
    second = http.post("/upload/storage/v1/b/bkt/o?uploadType=media&name=o", content=b"2").json()
    assert int(second["generation"]) > first.generation
    assert second["metageneration"] == "1"
    assert http.get(f"/storage/v1/b/bkt/o/o?generation={first.generation}").status_code == 404


def test_overwritten_versions_stay_readable(cloud: Cloud, http: httpx.Client) -> None:
    """With versioning, overwriting and deleting leave noncurrent versions, which can be read and deleted for good."""
    http.patch("/storage/v1/b/bkt", json={"versioning": {"enabled": True}})
    first, second = (cloud.store.put("bkt", "o", data) for data in (b"1", b"2"))
    assert http.delete("/storage/v1/b/bkt/o/o").status_code == 204
    assert http.get("/storage/v1/b/bkt/o/o").status_code == 404
    assert "items" not in http.get("/storage/v1/b/bkt/o").json()
    versions = http.get("/storage/v1/b/bkt/o?versions=true").json()["items"]
    assert [item["generation"] for item in versions] == [str(first.generation), str(second.generation)]
    assert all("timeDeleted" in item for item in versions)
    assert http.get(f"/storage/v1/b/bkt/o/o?alt=media&generation={first.generation}").content == b"1"
    assert http.delete("/storage/v1/b/bkt").status_code == 409
    for item in versions:
        assert http.delete(f"/storage/v1/b/bkt/o/o?generation={item['generation']}").status_code == 204
    assert http.delete("/storage/v1/b/bkt").status_code == 204


def test_listing_folds_at_the_delimiter(cloud: Cloud, http: httpx.Client) -> None:
    """Names with a delimiter are grouped into prefixes, and pages count both."""
    for name in ("a", "d/1", "d/2", "e/x/1", "e/y", "f"):
        cloud.store.put("bkt", name, b"")
    whole = http.get("/storage/v1/b/bkt/o?delimiter=/").json()
    assert [item["name"] for item in whole["items"]] == ["a", "f"]
    assert whole["prefixes"] == ["d/", "e/"]
    inner = http.get("/storage/v1/b/bkt/o?delimiter=/&prefix=e/").json()
    assert ([item["name"] for item in inner["items"]], inner["prefixes"]) == (["e/y"], ["e/x/"])
    ranged = http.get("/storage/v1/b/bkt/o?startOffset=d/2&endOffset=f").json()
    assert [item["name"] for item in ranged["items"]] == ["d/2", "e/x/1", "e/y"]


@settings(max_examples=40)
@given(
    names=st.sets(st.text("ab/", min_size=1, max_size=6)),
    size=st.integers(1, 4),
    delimiter=st.sampled_from(["", "/", "b/"]),
    prefix=st.text("ab/", max_size=2),
    versions=st.booleans(),
)
def test_pages_join_up(names: set[str], size: int, delimiter: str, prefix: str, versions: bool) -> None:
    """Small pages together have the same entries as one large page."""
    store = Store()
    bucket = store.create_bucket("bkt", fields={"versioning": {"enabled": True}})
    for name in sorted(names):
        store.put("bkt", name, b"")
        store.put("bkt", name, b"")
    query = {"delimiter": delimiter, "prefix": prefix}
    whole = list_objects(bucket, query, versions=versions)
    assert whole.token is None
    assert _in_pages(bucket, {**query, "maxResults": str(size)}, versions) == (
        [(item.name, item.generation) for item in whole.items],
        whole.prefixes,
    )


def _in_pages(bucket: Bucket, query: dict[str, str], versions: bool) -> tuple[list[tuple[str, int]], list[str]]:
    items, prefixes = list[tuple[str, int]](), list[str]()
    while True:
        page = list_objects(bucket, query, versions=versions)
        items += [(item.name, item.generation) for item in page.items]
        prefixes += page.prefixes
        if page.token is None:
            return items, prefixes
        query = {**query, "pageToken": page.token}


@pytest.mark.parametrize("token", ["!", "Zm9v", "w6Q", "OjpvYmplY3Q="])
def test_bad_page_tokens(http: httpx.Client, token: str) -> None:
    """An invalid page token is refused."""
    assert http.get("/storage/v1/b/bkt/o", params={"pageToken": token}).status_code == 400


def test_custom_time(cloud: Cloud, http: httpx.Client) -> None:
    """A custom time needs a UTC offset, and can only be moved to a later time."""
    cloud.store.put("bkt", "o", b"")

    def patched(value: str | None) -> int:
        return http.patch("/storage/v1/b/bkt/o/o", json={"customTime": value, "contentType": "a/b"}).status_code

    assert [patched(value) for value in ("soon", "2026-01-01", "2026-01-01T00:00:00", None)] == [400, 400, 400, 200]
    assert [patched(value) for value in ("2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00")] == [200, 200]
    assert [patched(value) for value in ("2025-12-31T23:59:59Z", None)] == [400, 400]
    assert http.patch("/storage/v1/b/bkt/o/o", json={"metadata": {"a": "b"}}).status_code == 200
    assert http.get("/storage/v1/b/bkt/o/o").json()["customTime"] == "2026-01-01T02:00:00+02:00"


def test_metadata_comes_with_every_form_of_upload(http: httpx.Client) -> None:
    """The metadata of an upload is stored, whether it came in one request or in a session."""
    kept = {"metadata": {"goog-reserved-file-mtime": "1795167433"}, "contentType": "a/b"}
    body = b"--b\r\n\r\n" + json.dumps({**kept, "name": "m"}).encode() + b"\r\n--b\r\n\r\nx\r\n--b--"
    multipart = {"Content-Type": "multipart/related; boundary=b"}
    http.post("/upload/storage/v1/b/bkt/o?uploadType=multipart", content=body, headers=multipart)
    session = http.post("/upload/storage/v1/b/bkt/o?uploadType=resumable", json={**kept, "name": "r"})
    http.put(session.headers["location"], content=b"x")
    for name in ("m", "r"):
        resource = http.get(f"/storage/v1/b/bkt/o/{name}?fields=metadata,contentType").json()
        assert resource == kept
