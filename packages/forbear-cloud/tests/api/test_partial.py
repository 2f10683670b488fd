"""Partial responses: a client that names fields gets only those."""

import httpx
import pytest

from forbear_cloud import Cloud
from forbear_cloud.api.partial import read_fields

OBJECTS = "/storage/v1/b/bkt/o"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("name", {"name": {}}),
        ("name,size", {"name": {}, "size": {}}),
        ("nextPageToken,items(name,crc32c)", {"nextPageToken": {}, "items": {"name": {}, "crc32c": {}}}),
        ("items/name,items/size", {"items": {"name": {}, "size": {}}}),
        ("items/acl(entity,role)", {"items": {"acl": {"entity": {}, "role": {}}}}),
        ("*/name", {"*": {"name": {}}}),
        ("items(metadata/goog-reserved-file-mtime)", {"items": {"metadata": {"goog-reserved-file-mtime": {}}}}),
    ],
)
def test_fields_nest_as_at_the_service(text: str, wanted: object) -> None:
    """Commas, slashes, parentheses and stars nest as at the service."""
    assert read_fields(text) == wanted


@pytest.mark.parametrize("text", ["", ",", "a,", "a(", "a()", "a(b", "a)b", "a/", "/a", "a b", "(a)", "a(" * 40])
def test_bad_selections(cloud: Cloud, http: httpx.Client, text: str) -> None:
    """A malformed selection is refused before the request has an effect."""
    assert (
        http.post(UPLOAD, params={**dict(httpx.QueryParams(UPLOAD.partition("?")[2])), "fields": text}).status_code
        == 400
    )
    assert len(cloud.effects) == 0


def test_fields_of_responses(cloud: Cloud, http: httpx.Client) -> None:
    """Writes, reads and pages return only the named fields; errors return everything."""
    made = http.post(f"{UPLOAD}&fields=name,size,nope", content=b"hello")
    assert made.json() == {"name": "o", "size": "5"}
    cloud.store.object("bkt", "o").fields["metadata"] = {"a": "1", "b": "2"}
    assert http.get(f"{OBJECTS}/o?fields=metadata/a").json() == {"metadata": {"a": "1"}}
    assert http.get(f"{OBJECTS}/o?fields=*").json()["name"] == "o"
    cloud.store.put("bkt", "p", b"")
    page = http.get(f"{OBJECTS}?maxResults=1&fields=nextPageToken,items(name)").json()
    assert page["items"] == [{"name": "o"}]
    assert page.keys() == {"items", "nextPageToken"}
    assert http.get(f"{OBJECTS}/nope?fields=name").json()["error"]["code"] == 404


def test_bytes_have_no_fields(cloud: Cloud, http: httpx.Client) -> None:
    """The bytes of an object are sent complete, even if they look like JSON."""
    cloud.store.put("bkt", "o", b'{"a": 1, "b": 2}', {"contentType": "application/json"})
    assert http.get(f"{OBJECTS}/o?alt=media&fields=a").json() == {"a": 1, "b": 2}
