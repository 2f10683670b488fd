"""The shipped table: complete, consistent, and every row of it answers as it says."""

import json
from collections.abc import Iterator
from importlib import resources
from itertools import product
from typing import Any

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request
from forbear.services.cloud_storage.json_api import operations
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage
from forbear.tables.table import Row, Rule
from forbear_testkit.rows import for_each

ROWS = operations()
DISPUTED = CloudStorage(disputed=True)
SOURCES = {
    "retry page", "retry page; conformance tests", "retry page (its Python section)", "gRPC definitions", "JUDGEMENT",
}  # fmt: skip

# What makes each kind of condition hold, and what looks like it and does not.
HOLDS: dict[tuple[str, str], list[tuple[str, dict[str, str], bytes | None]]] = {
    ("q", "ifGenerationMatch"): [("ifGenerationMatch=0", {}, b""), ("x=1&ifGenerationMatch=17&alt=json", {}, b"")],
    ("q", "ifMetagenerationMatch"): [("ifMetagenerationMatch=1", {}, b""), ("ifMeta%67enerationMatch=%31", {}, b"")],
    ("q", "generation"): [("generation=17", {}, b"")],
    ("b", "etag"): [("", {}, b'{"etag": "CAE="}')],
    ("h", "If-Match"): [("", {"if-match": '"CAE="'}, b""), ("", {"if-match": "CAE="}, b"")],
}
TRAPS: list[tuple[str, dict[str, str], bytes | None]] = [
    ("", {}, b""),
    ("", {}, None),
    ("alt=json&prettyPrint=false&unheardOf=1", {}, b""),
    ("ifGenerationNotMatch=5&ifMetagenerationNotMatch=5", {}, b""),
    ("ifSourceGenerationMatch=5&ifSourceMetagenerationMatch=5&sourceGeneration=5", {}, b""),
    ("ifSourceGenerationNotMatch=5&ifSourceMetagenerationNotMatch=5", {}, b""),
    ("ifGenerationMatch=&ifMetagenerationMatch=&generation=", {}, b'{"etag": ""}'),
    ("ifGenerationMatch&ifMetagenerationMatch&generation", {}, b'{"etag": null}'),
    ("ifGenerationMatch=abc&ifMetagenerationMatch=-1&generation=0", {}, b'{"policy": {"etag": "x"}}'),
    ("ifGenerationMatch=1&ifGenerationMatch=2&ifMetagenerationMatch=1&ifMetagenerationMatch=2", {}, b'"etag"'),
    ("ifgenerationmatch=1&ifmetagenerationmatch=1&Generation=1&etag=x", {}, b'{"Etag": "x"}'),
    ("rewriteToken=abc&userProject=ifGenerationMatch=1", {}, b'{"etag": "x"'),
    ("", {"if-match": "*"}, b""),
    ("", {"if-none-match": '"x"', "if-modified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}, b""),
    ("", {"x-goog-if-generation-match": "1", "x-goog-if-metageneration-match": "1", "etag": "x"}, b""),
    ("", {"x-goog-gcs-idempotency-token": "5c8c1f4e"}, b""),
]


def _id(row: Row) -> str:
    return row.id


def _request(row: Row, query: str = "", headers: dict[str, str] | None = None, body: bytes | None = b"") -> Request:
    method, template, _ = row.where
    segments = [f"a%2Fb%20c{index}" if part[:1] == "{" else part for index, part in enumerate(template.split("/"))]
    path = "/".join(segments)
    if row.id == "storage.objects.insert":  # an upload, as nearly all are; without one it is judged the same
        path, query = f"/upload{path}", f"uploadType=media&{query}"
    return Request(method, "storage.googleapis.com", f"{path}?{query}" if query else path, headers, body)


def _check(service: CloudStorage, row: Row, rule: Rule, request: Request, *, holds: bool) -> Judgement:
    judgement = service.classify(request)
    assert judgement.operation == row.id
    assert judgement.service == "cloud_storage"
    assert judgement.safety is rule.safety
    assert judgement.mutation is (row.where[0] != "GET")
    assert judgement.maybe_done == tuple(map(int, row.maybe_done))
    assert not judgement.session
    assert judgement.refused is None
    assert len(judgement.conditions) == len(rule.conditions)
    assert judgement.repeatable is (rule.safety is Safety.ALWAYS or holds)
    assert (judgement.met is not None) is holds
    assert judgement.met is None or judgement.met in judgement.conditions
    return judgement


@for_each(product(ROWS, [RECOMMENDED, DISPUTED, DOCUMENTED]), "{0.id} in {1!r}")
def test_every_row_answers_as_it_says(row: Row, service: CloudStorage) -> None:
    """With a condition, without one, and with everything that only looks like one."""
    rule = row.rule
    if service is DOCUMENTED:
        rule = row.documented or Rule(Safety.NEVER)
    elif service is DISPUTED and row.disputed:
        rule = Rule(Safety.CONDITIONAL, row.rule.conditions + row.disputed)
    counting = {terms[0] for terms in rule.conditions}
    for query, headers, body in TRAPS:
        _check(service, row, rule, _request(row, query, headers, body), holds=False)
    for term, examples in HOLDS.items():
        for query, headers, body in examples:
            judgement = _check(service, row, rule, _request(row, query, headers, body), holds=term in counting)
            assert judgement.met is None or judgement.met.startswith(term[1])


@for_each(ROWS, "{0.id}")
def test_a_method_override_stands_for_the_method(row: Row) -> None:
    """The method in the override header of a POST is executed; on any other method all is in doubt."""
    if row.id == "storage.objects.insert":
        return
    plain = _request(row)
    posted = plain.replace(method="POST", headers={"x-http-method-override": plain.method.lower()})
    assert RECOMMENDED.classify(posted) == RECOMMENDED.classify(plain)
    if plain.method != "POST":
        for doubtful in (
            plain.replace(headers={"x-http-method-override": "POST"}),
            plain.replace(method="POST", headers={"x-http-method": plain.method}),
            plain.replace(method="POST", headers={"x-method-override": plain.method}),
            plain.replace(method="GET", headers={"x-http-method-override": "PATCH"}),
        ):
            judgement = RECOMMENDED.classify(doubtful)
            assert (judgement.operation, judgement.safety) == (None, Safety.NEVER)


@for_each(ROWS, "{0.id}")
def test_every_row_is_complete(row: Row) -> None:
    """Sources are named, duplicates of what is unsafe are described, and reads are always safe."""
    assert row.columns["source"] in SOURCES
    assert len(row.where) == 3
    assert all(status.isdigit() and 400 <= int(status) < 500 for status in row.maybe_done)
    if row.where[0] == "GET":
        assert row.rule == row.documented == Rule(Safety.ALWAYS)
        assert not row.maybe_done
    if row.columns["source"] == "JUDGEMENT" and row.where[0] != "GET":
        assert row.documented is None, "what is our judgement is not the page's"
    if row.rule.safety is Safety.ALWAYS:
        assert row.effect == "none"
    if row.rule.safety is Safety.CONDITIONAL:
        assert row.maybe_done


def test_nothing_that_can_hold_twice_is_a_condition() -> None:
    """Conditions on another version or on the source can hold again after the first success."""
    for row in ROWS:
        for rule in (row.rule, row.documented or row.rule):
            for terms in rule.conditions + row.disputed:
                for _, name in terms:
                    assert "NotMatch" not in name
                    assert "Source" not in name


def test_the_documented_page_is_never_laxer_but_for_etags() -> None:
    """If the page and the table differ, the page is stricter, or names an ETag that is disputed."""
    for row in ROWS:
        if row.documented is None or row.documented == row.rule:
            continue
        assert row.documented.safety is row.rule.safety is Safety.CONDITIONAL
        assert set(row.documented.conditions) == {*row.rule.conditions, *row.disputed}


def _methods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from _methods(inner)


def test_the_table_is_the_discovery_document() -> None:
    """A method that Google adds, moves or drops shows up here."""
    documents = resources.files("googleapiclient.discovery_cache") / "documents"
    document = json.loads((documents / "storage.v1.json").read_text(encoding="utf-8"))
    assert document["servicePath"] == "storage/v1/"
    published = {found["id"]: (found["httpMethod"], "/storage/v1/" + found["path"]) for found in _methods(document)}
    assert {row.id: row.where[:2] for row in ROWS} == published
    assert [found["id"] for found in _methods(document) if found.get("supportsMediaUpload")] == [
        "storage.objects.insert"
    ]
    assert [found["id"] for found in _methods(document) if found.get("supportsMediaDownload")] == [
        "storage.objects.get"
    ]


def test_every_condition_is_a_parameter_of_its_method() -> None:
    """A condition that the API does not have would never hold, or never be enforced."""
    documents = resources.files("googleapiclient.discovery_cache") / "documents"
    document = json.loads((documents / "storage.v1.json").read_text(encoding="utf-8"))
    parameters = {found["id"]: found["parameters"] for found in _methods(document)}
    for row in ROWS:
        for terms in row.rule.conditions:
            for prefix, name in terms:
                if prefix == "q":
                    assert parameters[row.id][name]["format"] == "int64", (row.id, name)
