"""The XML API: buckets and objects by path or by host, conditions in headers, errors as documents."""

from email.utils import formatdate
from xml.etree import ElementTree as ET

import httpx
import pytest

from forbear.services.cloud_storage.xml_api import operations as rows
from forbear_cloud import Cloud, Fault
from forbear_cloud.routing import OPERATIONS
from forbear_cloud.xml import XML_HANDLERS
from forbear_testkit.cloud.xml import MATCH, error_of, texts

SPACE = "{http://doc.s3.amazonaws.com/2006-03-01}"


def test_the_ids_are_those_of_the_table() -> None:
    """Every operation has a handler, and an id of forbear's table of the XML API."""
    assert XML_HANDLERS.keys() <= OPERATIONS
    assert XML_HANDLERS.keys() <= {row.id for row in rows()}


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/bkt/dir/a%20b", None),
        ("/dir/a%20b", "bkt.storage.googleapis.com"),
        ("/dir/a%20b", "bkt.localhost:80"),
        ("/bkt/dir%2Fa%20b", "storage.googleapis.com"),
    ],
)
def test_an_object(cloud: Cloud, http: httpx.Client, path: str, host: str | None) -> None:
    """An object can be written, read, checked and deleted, with the bucket in the path or in the host."""
    who = {} if host is None else {"Host": host}
    meta = {"Content-Type": "text/plain", "x-goog-meta-color": "red", "Cache-Control": "no-store"}
    put = http.put(path, content=b"hello", headers={**meta, **who})
    item = cloud.store.object("bkt", "dir/a b")
    assert (put.status_code, put.headers["x-goog-generation"]) == (200, str(item.generation))
    assert put.headers["etag"] == '"5d41402abc4b2a76b9719d911017c592"'
    for method in ("GET", "HEAD"):
        got = http.request(method, path, headers=who)
        assert got.content == (b"hello" if method == "GET" else b"")
        assert (got.headers["content-length"], got.headers["content-type"]) == ("5", "text/plain")
        assert (got.headers["x-goog-meta-color"], got.headers["cache-control"]) == ("red", "no-store")
        assert got.headers["etag"] == put.headers["etag"]
        assert got.headers["x-goog-generation"] == put.headers["x-goog-generation"]
        assert got.headers["x-goog-hash"] == put.headers["x-goog-hash"]
    assert http.delete(path, headers=who).status_code == 204
    assert error_of(http.get(path, headers=who)) == (404, "NoSuchKey")
    assert http.head(path, headers=who).status_code == 404
    assert [(effect.operation, effect.resource) for effect in cloud.effects] == [
        ("xml.object.put", "bkt/dir/a b"),
        ("xml.object.delete", "bkt/dir/a b"),
    ]


def test_each_api_reads_objects_of_the_other(http: httpx.Client) -> None:
    """Each API reads the objects that the other one wrote."""
    http.put("/bkt/o", content=b"x", headers={"x-goog-meta-a": "b", "x-goog-acl": "public-read"})
    resource = http.get("/storage/v1/b/bkt/o/o?projection=full").json()
    assert (resource["metadata"], resource["size"]) == ({"a": "b"}, "1")
    assert "allUsers" in [entry["entity"] for entry in resource["acl"]]


def test_conditions_of_xml_requests_are_checked(cloud: Cloud, http: httpx.Client) -> None:
    """Generations and metagenerations are checked on every write and read, and 0 means that no object exists."""
    assert http.put("/bkt/o", content=b"1", headers={MATCH: "0"}).status_code == 200
    assert error_of(http.put("/bkt/o", content=b"2", headers={MATCH: "0"})) == (412, "PreconditionFailed")
    now = str(cloud.store.object("bkt", "o").generation)
    assert http.get("/bkt/o", headers={MATCH: now}).status_code == 200
    assert error_of(http.get("/bkt/o", headers={MATCH: "1"})) == (412, "PreconditionFailed")
    wrong = {MATCH: now, "x-goog-if-metageneration-match": "2"}
    assert error_of(http.delete("/bkt/o", headers=wrong)) == (412, "PreconditionFailed")
    assert error_of(http.put("/bkt/o", content=b"2", headers={MATCH: "x"})) == (400, "InvalidArgument")
    assert error_of(http.delete("/bkt/o?generation=1")) == (404, "NoSuchKey")
    assert http.delete(f"/bkt/o?generation={now}", headers={MATCH: now}).status_code == 204
    assert cloud.effects.count() == 2


def test_reads_respect_ranges_etags_and_dates(cloud: Cloud, http: httpx.Client) -> None:
    """Reads respect ranges, entity tags and dates."""
    cloud.store.put("bkt", "o", b"hello")
    plain = http.get("/bkt/o")
    part = http.get("/bkt/o", headers={"Range": "bytes=1-2", "If-Range": plain.headers["etag"]})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"el", "bytes 1-2/5")
    assert http.get("/bkt/o", headers={"Range": "bytes=1-2", "If-Range": '"x"'}).status_code == 200
    assert error_of(http.get("/bkt/o", headers={"Range": "bytes=9-"})) == (416, "InvalidRange")
    same = http.get("/bkt/o", headers={"If-None-Match": plain.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert http.get("/bkt/o", headers={"If-Match": plain.headers["etag"]}).status_code == 200
    assert error_of(http.get("/bkt/o", headers={"If-Match": '"x"'})) == (412, "PreconditionFailed")
    later, earlier = formatdate(2e9, usegmt=True), formatdate(1e9, usegmt=True)
    assert http.get("/bkt/o", headers={"If-Modified-Since": later}).status_code == 304
    assert http.get("/bkt/o", headers={"If-Modified-Since": earlier}).status_code == 200
    assert http.get("/bkt/o", headers={"If-Unmodified-Since": later}).status_code == 200
    assert http.get("/bkt/o", headers={"If-Unmodified-Since": earlier}).status_code == 412
    assert error_of(http.get("/bkt/o", headers={"If-Modified-Since": "soon"})) == (400, "InvalidArgument")


def test_a_copy_keeps_or_replaces_the_metadata(cloud: Cloud, http: httpx.Client) -> None:
    """A copy keeps the metadata or replaces it, and its source has its own conditions."""
    http.put("/bkt/dir/a", content=b"x", headers={"x-goog-meta-a": "b", "Content-Type": "text/plain"})
    source = {"x-goog-copy-source": "/bkt/dir%2Fa"}
    copied = http.put("/bkt/c", headers=source)
    assert ET.fromstring(copied.content).tag == f"{SPACE}CopyObjectResult"
    assert http.get("/bkt/c").headers["x-goog-meta-a"] == "b"
    replaced = {"x-amz-copy-source": "bkt/c", "x-amz-metadata-directive": "REPLACE", "x-amz-meta-z": "1"}
    assert http.put("/bkt/c", headers=replaced).status_code == 200
    headers = http.get("/bkt/c").headers
    assert ("x-goog-meta-a" in headers, headers["x-goog-meta-z"]) == (False, "1")
    failing = [
        {**source, MATCH: "0"},
        {**source, "x-goog-copy-source-if-generation-match": "5"},
        {**source, "x-goog-copy-source-if-match": '"x"'},
        {**source, "x-goog-copy-source-if-none-match": "*"},
    ]
    for headers_given in failing:
        assert error_of(http.put("/bkt/c", headers=headers_given)) == (412, "PreconditionFailed")
    assert error_of(http.put("/bkt/c", headers={"x-goog-copy-source": "/none/a"})) == (404, "NoSuchBucket")
    assert error_of(http.put("/bkt/c", headers={"x-goog-copy-source": "/bkt/none"})) == (404, "NoSuchKey")
    assert error_of(http.put("/bkt/c", headers={**source, "x-goog-copy-source-generation": "1"})) == (404, "NoSuchKey")
    assert [effect.operation for effect in cloud.effects] == [
        "xml.object.put",
        "xml.object.put.copy",
        "xml.object.put.metadata",
    ]


def test_objects_are_joined_in_order(cloud: Cloud, http: httpx.Client) -> None:
    """Objects are joined in order; the new object has no MD5, and its own conditions."""
    for name in ("a", "b"):
        cloud.store.put("bkt", name, name.encode())
    generation = cloud.store.object("bkt", "a").generation
    first = f"<Component><Name>a</Name><Generation>{generation}</Generation></Component>"
    body = f"<ComposeRequest>{first}<Component><Name>b</Name></Component></ComposeRequest>"
    done = http.put("/bkt/ab?compose", content=body, headers={MATCH: "0"})
    assert (done.status_code, "md5" in done.headers["x-goog-hash"]) == (200, False)
    got = http.get("/bkt/ab")
    assert (got.content, got.headers["x-goog-component-count"], got.headers["etag"][:2]) == (b"ab", "2", '"-')
    assert error_of(http.put("/bkt/ab?compose", content=body, headers={MATCH: "0"})) == (412, "PreconditionFailed")
    stale = body.replace("</Name></Comp", "</Name><IfGenerationMatch>1</IfGenerationMatch></Comp")
    assert error_of(http.put("/bkt/ab?compose", content=stale)) == (412, "PreconditionFailed")
    assert error_of(http.put("/bkt/ab?compose", content=body.replace(">b<", ">c<"))) == (404, "NoSuchKey")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<ComposeRequest/>", "InvalidArgument"),
        ("<ComposeRequest><Component/></ComposeRequest>", "InvalidArgument"),
        ("<Other/>", "MalformedXML"),
        ("<ComposeRequest>", "MalformedXML"),
        ("", "MalformedXML"),
        (b"\xff\xfe<", "MalformedXML"),
        ("<?xml version='1.0' encoding='nonsense'?><ComposeRequest/>", "MalformedXML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><ComposeRequest>&a;</ComposeRequest>', "MalformedXML"),
        ("<a>" * 5000, "MalformedXML"),
    ],
)
def test_bad_documents(http: httpx.Client, body: str | bytes, code: str) -> None:
    """A body that is not XML, has another root or defines entities is refused."""
    assert error_of(http.put("/bkt/x?compose", content=body)) == (400, code)


def test_buckets_can_be_created_listed_and_deleted(cloud: Cloud, http: httpx.Client) -> None:
    """Buckets can be created, checked, listed and deleted."""
    location = "<CreateBucketConfiguration><LocationConstraint>EU</LocationConstraint></CreateBucketConfiguration>"
    assert http.put("/new-one", content=location, headers={"x-goog-project-id": "q"}).status_code == 200
    assert cloud.store.bucket("new-one").fields["location"] == "EU"
    assert error_of(http.put("/new-one")) == (409, "BucketAlreadyOwnedByYou")
    assert error_of(http.put("/X")) == (400, "InvalidArgument")
    assert http.head("/new-one").headers["x-goog-metageneration"] == "1"
    assert http.head("/", headers={"Host": "new-one.storage.googleapis.com"}).status_code == 200
    assert texts(http.get("/"), "Buckets/Bucket/Name") == ["bkt", "new-one"]
    assert texts(http.get("/", headers={"x-goog-project-id": "q"}), "Buckets/Bucket/Name") == ["new-one"]
    http.put("/new-one/o", content=b"x")
    assert error_of(http.delete("/new-one")) == (409, "BucketNotEmpty")
    http.delete("/new-one/o")
    wrong = http.delete("/new-one", headers={"x-goog-if-metageneration-match": "2"})
    assert error_of(wrong) == (412, "PreconditionFailed")
    assert http.delete("/new-one").status_code == 204
    for response in (http.get("/new-one"), http.get("/new-one/o"), http.put("/new-one/o"), http.delete("/new-one")):
        assert error_of(response) == (404, "NoSuchBucket")


@pytest.mark.parametrize("second", [False, True])
def test_listings_have_groups_and_pages(cloud: Cloud, http: httpx.Client, second: bool) -> None:
    """Objects are listed by name, grouped at a delimiter and in pages, in both versions of the format."""
    for name in ("a", "d/1", "d/2", "e&<", "f/1", "g"):
        cloud.store.put("bkt", name, b"x")
    base = {"list-type": "2"} if second else {}
    assert texts(http.get("/bkt", params=base), "Contents/Key") == ["a", "d/1", "d/2", "e&<", "f/1", "g"]
    assert texts(http.get("/bkt", params={**base, "prefix": "d/"}), "Contents/Key") == ["d/1", "d/2"]
    names: list[str | None] = []
    query = {**base, "delimiter": "/", "max-keys": "2"}
    while True:
        response = http.get("/bkt", params=query)
        names += texts(response, "Contents/Key") + texts(response, "CommonPrefixes/Prefix")
        if texts(response, "IsTruncated") == ["false"]:
            break
        token = texts(response, "NextContinuationToken" if second else "NextMarker")[0] or ""
        query["continuation-token" if second else "marker"] = token
    assert names == ["a", "d/", "e&<", "f/", "g"]
    after = {**base, "start-after" if second else "marker": "d/1"}
    assert texts(http.get("/bkt", params=after), "Contents/Key") == ["d/2", "e&<", "f/1", "g"]


def test_what_is_not_served(http: httpx.Client) -> None:
    """Subresources and methods that the cloud does not serve get an error in the form of the API."""
    for method, path in (("PUT", "/bkt?lifecycle"), ("GET", "/bkt/o?acl"), ("POST", "/bkt"), ("PATCH", "/bkt/o")):
        assert error_of(http.request(method, path)) == (501, "NotImplemented")


def test_errors_of_faults_are_xml(cloud: Cloud, http: httpx.Client) -> None:
    """Faults match the operations by id, and their errors are XML."""
    cloud.fault(
        Fault.status(503, operation="xml.object.put", when="after", retry_after=3),
        Fault.status(429, operation="xml.object.get", reason="rateLimitExceeded"),
        Fault.status(503, operation="xml.object.get", reason="SlowDown"),
    )
    assert http.put("/bkt/c", headers={"x-goog-copy-source": "/bkt/o"}).status_code == 404
    lost = http.put("/bkt/o", content=b"x")
    assert (error_of(lost), lost.headers["retry-after"]) == ((503, "ServiceUnavailable"), "3")
    assert error_of(http.get("/bkt/o")) == (429, "SlowDown")
    assert error_of(http.get("/bkt/o")) == (503, "SlowDown")
    assert http.get("/bkt/o").content == b"x"
    assert cloud.effects.count("xml.object.put", "bkt/o") == 1


def test_custom_metadata_that_is_no_header(cloud: Cloud, http: httpx.Client) -> None:
    """Custom metadata whose names cannot be header names is left out of the response."""
    cloud.store.put("bkt", "o", b"x", {"metadata": {"a": "1", "b c": "2", "d:\r\ne": "3", "é": "4"}})
    response = http.get("/bkt/o")
    assert (response.status_code, response.headers["x-goog-meta-a"]) == (200, "1")
    assert len([name for name in response.headers if name.startswith("x-goog-meta-")]) == 1
