"""The table of the XML API: complete, consistent, and every row of it answers as it says, on any host."""

from itertools import permutations, product

import pytest

from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.http.request import Request
from forbear.services.cloud_storage.json_api import choose
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage
from forbear.services.cloud_storage.xml_api import operations
from forbear.tables.table import Row
from forbear_testkit.rows import for_each

ROWS = operations()
DISPUTED = CloudStorage(disputed=True)
SERVICES = {"recommended": RECOMMENDED, "disputed": DISPUTED, "documented": DOCUMENTED}
SESSION = "upload_id"
VALUES = {"uploadId": "uploadId=VXBsb2Fk", "partNumber": "partNumber=3", "upload_id": "upload_id=ABg5"}

VERSIONED = b"<Delete><Object><Key>a</Key><VersionId>7</VersionId></Object></Delete>"
HOLDS: dict[tuple[str, str], list[tuple[str, dict[str, str], bytes]]] = {
    ("h", "x-goog-if-generation-match"): [
        ("", {"x-goog-if-generation-match": "0"}, b""),
        ("X-Goog-Signature=a&X-Goog-Expires=9", {"x-goog-if-generation-match": " 17 "}, b""),
    ],
    ("h", "x-goog-if-metageneration-match"): [("", {"x-goog-if-metageneration-match": "1"}, b"")],
    ("q", "generation"): [("generation=17", {}, b""), ("userProject=p&gener%61tion=17", {}, b"")],
    ("h", "If-Match"): [("", {"if-match": '"CAE="'}, b"")],
    ("x", "Object/VersionId"): [("", {}, VERSIONED)],
}
TRAPS: list[tuple[str, dict[str, str], bytes | None]] = [
    ("", {}, b""),
    ("", {}, None),
    ("", {"x-goog-if-generation-match": "", "x-goog-if-metageneration-match": ""}, b""),
    ("", {"x-goog-if-generation-match": "-1", "x-goog-if-metageneration-match": "abc"}, b""),
    ("", {"x-goog-if-generation-match": "1, 1", "x-goog-if-metageneration-match": "1, 2"}, b""),
    ("", {"X-Goog-If-Generation-Match": "1", "X-GOOG-IF-METAGENERATION-MATCH": "1"}, b""),
    ("", {"x-goog-if-generation-not-match": "1", "x-amz-if-generation-match": "1", "if-none-match": "*"}, b""),
    ("", {"x-goog-copy-source-if-generation-match": "1", "x-goog-copy-source-if-match": '"x"'}, b""),
    ("", {"x-goog-copy-source-generation": "1", "x-goog-copy-source-if-metageneration-match": "1"}, b""),
    ("", {"if-match": "*", "if-unmodified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}, b""),
    ("generation=0", {}, b"<Delete><Object><Key>a</Key></Object></Delete>"),
    ("generation=", {}, VERSIONED.replace(b"7", b"0")),
    ("generation", {}, VERSIONED.replace(b"</Delete>", b"<Object><Key>b</Key></Object></Delete>")),
    ("", {}, b'<!DOCTYPE Delete [<!ENTITY v "7">]>' + VERSIONED.replace(b"7", b"&v;")),
]
PLACES = (
    ("storage.googleapis.com", "/my-bucket", "/a/b%2Fc"),
    ("storage.mtls.googleapis.com:443", "/my.dotted.bucket", "/storage/v1/b"),
    ("commondatastorage.googleapis.com", "/my-bucket", "/batch"),
    ("my-bucket.storage.googleapis.com", "", "/storage/v1/b/x"),
    ("a.b.c.storage-download.googleapis.com", "", "/.hidden"),
    ("127.0.0.1:9000", "/my_bucket", "/a..b"),
)


def _header(row: Row) -> dict[str, str]:
    name, _, value = row.where[3].partition(": ")
    if not name:
        return {}
    given = {"x-goog-copy-source": "/other/a", "content-type": "multipart/form-data; boundary=x"}
    headers = {name: given.get(name, value)}
    if row.where[3] == "content-range: bytes":
        return {"content-range": "bytes 0-262143/*", "content-length": "262144"}
    if row.where[3] == "content-range: bytes */":
        return {"content-range": "bytes */*", "content-length": "0"}
    return headers | ({"x-goog-copy-source": "/my-bucket/a"} if "directive" in name else {})


def _targets(row: Row, query: str) -> list[tuple[str, str]]:
    """The hosts and targets by which the operation of a row can be asked for, its subresources in any order."""
    resources, subresources = row.where[1].split("|"), row.where[2].split("|")
    found: list[tuple[str, str]] = []
    for host, bucket, name in PLACES:
        paths = {"service": "/", "bucket": f"{bucket}/", "object": bucket + name}
        for resource in resources:
            if resource == "service" and not bucket:
                continue
            for subresource in subresources:
                parts = [VALUES.get(part, part) for part in (*subresource.split("&"), query) if part]
                for order in permutations(parts):
                    asked = "&".join(order)
                    found.append((host, f"{paths[resource]}?{asked}" if asked else paths[resource]))
    return found


@for_each(product([row for row in ROWS if row.where[2] != SESSION], SERVICES), "{0.id} in {1}")
def test_every_row_answers_as_it_says(row: Row, name: str) -> None:
    """With a condition, without one, and with everything that only looks like one."""
    service = SERVICES[name]
    rule = choose(row, disputed=service.disputed, documented=service.documented)
    counting = {terms[0] for terms in rule.conditions}
    assert counting <= set(HOLDS)
    sent = [(False, *trap) for trap in TRAPS]
    sent += [(term in counting, *example) for term, examples in HOLDS.items() for example in examples]
    for holds, query, headers, body in sent:
        if row.where[:2] == ("POST", "service") and body != b"":
            continue  # no action by its query alone
        for host, target in _targets(row, query):
            request = Request(row.where[0], host, target, {**_header(row), **headers}, body)
            judgement = service.classify(request)
            assert judgement.operation == row.id, (host, target)
            assert judgement.safety is rule.safety
            assert judgement.repeatable is (rule.safety is Safety.ALWAYS or holds), (host, target, headers)
            assert (judgement.met is not None) is holds
            assert judgement.mutation is not row.is_read
            assert judgement.maybe_done == codes.statuses(row.maybe_done)
            assert len(judgement.conditions) == len(rule.conditions)
            assert not judgement.session


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("row", [row for row in ROWS if row.where[2] == SESSION], ids=lambda row: row.id)
def test_every_row_on_sessions_answers_as_it_says(row: Row, name: str) -> None:
    """The session's own protocol: a chunk is continued after asking, the rest may be repeated."""
    for host, target in _targets(row, "X-Goog-Signature=a"):
        body = None if row.where[3] == "content-range: bytes" else b""
        judgement = SERVICES[name].classify(Request(row.where[0], host, target, _header(row), body))
        assert (judgement.operation, judgement.safety) == (row.id, row.rule.safety)
        assert judgement.repeatable is (row.rule.safety is Safety.ALWAYS)
        assert judgement.maybe_done == codes.statuses(row.maybe_done)
        assert judgement.session


@for_each(ROWS, "{0.id}")
def test_every_row_is_complete(row: Row) -> None:
    """Sources are named, duplicates of what is unsafe are described, and reads are always safe."""
    method, resource, _, _ = row.where
    assert row.columns["source"] in {"retry page", "JUDGEMENT", "retry page; JUDGEMENT"}
    assert set(resource.split("|")) <= {"service", "bucket", "object"}
    assert (row.documented is None) is (row.columns["source"] == "JUDGEMENT")
    if method in ("GET", "HEAD", "OPTIONS"):
        assert row.is_read
    if row.rule.safety is not Safety.ALWAYS:
        assert row.effect != "none"
    if row.documented is not None and row.documented != row.rule:
        assert row.documented.safety is Safety.CONDITIONAL


def test_how_many_there_are() -> None:
    """No row may go missing."""
    assert len(ROWS) == 68
