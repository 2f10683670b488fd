"""Answers agree with the tables, row by row, and with what adapters do after a failure."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import forbear
from forbear.answers import http, tables
from forbear.answers.answer import LOST, NOT_SENT, FailureOutcome
from forbear.answers.http import Overrides
from forbear.answers.profile import ProfileChoice
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT
from forbear.exchange.call_state import Start
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.send import Fixed
from forbear.grpc.call import GrpcCall
from forbear.http.api import Api, IdempotencyKey
from forbear.http.request import Request
from forbear.http.vouch import Vouch
from forbear.run.grant import Grant
from forbear.services import redis, registry
from forbear_testkit.rows import for_each

HOSTS = {
    "cloud_storage.json": ("storage.googleapis.com",),
    "cloud_storage.xml": ("storage.googleapis.com",),
    "iam": ("iam.googleapis.com", "iamcredentials.googleapis.com", "pubsub.googleapis.com"),
    "memorystore": ("redis.googleapis.com", "memorystore.googleapis.com"),
    "resource_manager": ("cloudresourcemanager.googleapis.com",),
}
VALUES = {"requestId": "c8b4a1de-7d0f-4c6e-9c55-0f2d8f1b3a11", "If-Match": '"7"'}
SENT = {"content-range: bytes": "bytes 0-9/*", "content-range: bytes */": "bytes */*"}
RESOURCES = {"service": "/", "bucket": "/my-bucket/", "object": "/my-bucket/a"}


def target_of(entry: TableEntry) -> tuple[str, dict[str, str]]:
    """A target and the headers for the operation of a row."""
    columns = entry.columns
    if "path" in columns:
        return re.sub(r"\{[^}]*\}", "x", columns["path"].split("|")[0]), {}
    name, _, value = columns["header"].partition(": ")
    headers = {name: SENT.get(columns["header"], value or "/other/a")} if name else {}
    if "directive" in name:
        headers["x-goog-copy-source"] = "/my-bucket/a"
    query = re.sub(r"\b(upload_?[iI]d|partNumber)\b", r"\1=3", columns["query"].split("|")[0])
    path = RESOURCES[columns["resource"].split("|")[0]]
    return f"{path}?{query}" if query else path, headers


def requests_of(entry: TableEntry, host: str) -> Iterator[Request]:
    """A request for a row without any condition, and one with each that its query or its headers can have."""
    target, headers = target_of(entry)
    method = entry.columns["method"]
    yield Request(method, host, target, headers)
    for condition in entry.conditions:
        name, sign = condition[:-1], condition[-1:]
        value = VALUES.get(name, "7")
        if sign == "=" and name.isalnum():
            yield Request(method, host, f"{target}{'&' if '?' in target else '?'}{name}={value}", headers)
        elif sign == ":":
            yield Request(method, host, target, {**headers, name.lower(): value})


ROWS = [(table, entry) for table in HOSTS for entry in tables.find(table)]


def host_of(service: Any, table: str, entry: TableEntry) -> str:
    """The first host of a table on which the service finds the operation of a row."""
    for host in HOSTS[table]:
        if service.classify(next(requests_of(entry, host))).operation == entry.id:
            return host
    raise AssertionError(f"no host has {entry.id}")


@for_each(ROWS, "{1.id} of {0}")
def test_answers_about_requests_agree_with_the_tables(table: str, entry: TableEntry) -> None:
    """The answer about a text has the judgement of the service, and the outcome follows from it."""
    service: Any = registry.service(table.partition(".")[0])
    host = host_of(service, table, entry)
    for request in requests_of(entry, host):
        answer = forbear.explain(f"{request.method} https://{host}{request.target}", headers=request.headers)
        assert answer.judgement == service.classify(request)
        assert answer.outcomes[1].failure == LOST
        assert answer.outcomes[1].retried is (answer.repeatable or answer.judgement.session)


RPCS = [(table.partition(".")[0], entry) for table in tables.names() for entry in tables.find(table) if entry.rpc]


@for_each(RPCS, "{1.rpc} of {0}")
def test_answers_about_rpcs_agree_with_the_tables(name: str, entry: TableEntry) -> None:
    """The same for each RPC, without fields and with the conditions on fields that can be written as words."""
    service: Any = registry.service(name)
    names = [name for name in entry.fields if name.isidentifier()]
    messages: list[dict[str, object]] = [{}, *(dict[str, object]({name: 7}) for name in names)]
    for message in messages:
        answer = forbear.explain(f"/{entry.rpc}", fields=message, service=name)
        assert answer.judgement == service.classify_call(GrpcCall(entry.rpc, message))
        assert answer.operation == entry.rpc
        assert answer.outcomes[1].retried is answer.repeatable


@for_each(tables.find("redis"), "{0.id}")
def test_answers_about_commands_agree_with_the_tables(entry: TableEntry) -> None:
    """The same for each command, as a text and as a list of words."""
    for words in (entry.id.split(), [*entry.id.split(), "key", "1", "NX"]):
        answer = forbear.explain(words)
        assert answer == forbear.explain(" ".join(words))
        assert answer.judgement == redis.classify(words)
        assert answer.outcomes[1].retried is answer.repeatable


def driven(request: Request, overrides: Overrides) -> list[FailureOutcome]:
    """Return what an exchange does after each kind of failure of the first attempt; answers leave out rare statuses."""
    policy, service = http.policy_for(request, None, ProfileChoice("policy"))
    own = overrides.vouch.find_own_api(request.origin)
    key = own.key if own is not None and service.name == "rfc9110" else None
    outcomes = list[FailureOutcome]()

    def add(failure: str, status: int | None, grant: Grant | None, exchange: Exchange) -> None:
        text = "the error is permanent" if exchange.report is None else exchange.report.text
        outcomes.append(FailureOutcome(failure, status, grant is not None, "" if grant is not None else text))

    def exchange() -> Exchange:
        new = key is not None and key.header.lower() not in request.headers
        vouch = overrides.vouch
        return Exchange(
            policy, service, lambda: request, Fixed(b""), Start(), key=key, is_new_key=new, vouch=vouch
        )  # fmt: skip

    for failure, verdict in ((NOT_SENT, NOT_EXECUTED), (LOST, TRANSIENT)):
        one = exchange()
        add(failure, None, one.failed(ConnectionError(failure), verdict), one)
    for status in (408, 429, 500, 502, 503, 504, 400, 401, 403, 404, 409, 412):
        one = exchange()
        add(str(status), status, one.responded(status, {}, None), one)
    return outcomes


UPLOAD = "/upload/storage/v1/b/b/o?uploadType=resumable&upload_id=x"
KEY = IdempotencyKey("Idempotency-Key", add=True)
REQUESTS = [
    Request("DELETE", "storage.googleapis.com", "/storage/v1/b/b/o/a?ifGenerationMatch=7"),
    Request("DELETE", "storage.googleapis.com", "/storage/v1/b/b/o/a"),
    Request("PUT", "storage.googleapis.com", UPLOAD, {"content-range": "bytes 0-9/10"}, None),
    Request("PUT", "storage.googleapis.com", UPLOAD, {"content-range": "items 0-9/10"}, None),
    Request("PUT", "storage.googleapis.com", UPLOAD, {"content-range": "bytes */10"}),
    Request("POST", "storage.googleapis.com", "/batch/storage/v1"),
    Request("POST", "iam.googleapis.com", "/v1/projects/p/roles/r:undelete"),
    Request("POST", "api.example.com", "/orders"),
    Request("POST", "api.example.com", "/orders", {"idempotency-key": "mine"}),
    Request("PATCH", "api.example.com", "/orders/1", {"if-match": '"1"'}),
    Request("PUT", "api.example.com", "/orders/1"),
    Request("GET", "api.example.com", "/orders/1"),
]
OVERRIDES = {
    "nothing": Overrides(),
    "a vouch": Overrides(Vouch("POST https://api.example.com/orders")),
    "statuses": Overrides(Vouch(apis=Api("https://api.example.com", not_executed=[429, 404]))),
    "a key": Overrides(Vouch(apis=Api("https://api.example.com", key=KEY))),
}


@pytest.mark.parametrize("word", OVERRIDES)
def test_outcomes_are_those_of_the_exchange(word: str) -> None:
    """Each failure is retried or not as an adapter does it, and for what it gives up on it says the same."""
    for request in REQUESTS:
        answer = http.answer(request, None, ProfileChoice("policy"), OVERRIDES[word])
        said = {
            each.failure: FailureOutcome(each.failure, each.status, each.retried, "" if each.retried else each.why)
            for each in answer.outcomes
        }
        for outcome in driven(request, OVERRIDES[word]):
            assert said[outcome.failure] == outcome, request


@pytest.mark.parametrize(
    ("judgement", "why"),
    [
        (0, "safe with ifGenerationMatch="),
        (1, "only with ifGenerationMatch= or generation="),
        (2, "part of an upload: query the session, and send the rest"),
        (7, "a repeat could do harm"),
        (10, "a repeat is harmless"),
        (11, "it changes nothing"),
    ],
)
def test_the_reason_is_in_the_text_of_the_answer(judgement: int, why: str) -> None:
    """The reason is a few words, and stands in the text of the answer."""
    answer = forbear.explain(REQUESTS[judgement])
    assert answer.why == why
    assert str(answer).endswith(f" be repeated ({why})")


def test_what_is_said_of_words() -> None:
    """The user's word and a key are reasons of their own, and leave nothing to vouch for."""
    post = REQUESTS[7]
    plain, vouched, keyed = (
        http.answer(post, None, ProfileChoice("policy"), OVERRIDES[word]) for word in ("nothing", "a vouch", "a key")
    )
    assert (plain.repeatable, vouched.repeatable, keyed.repeatable) == (False, True, True)
    assert plain.would_vouch == 'safe="POST https://api.example.com/orders"'
    assert (vouched.would_vouch, keyed.would_vouch) == (None, None)
    assert vouched.why == "you vouch that a repeat does no harm"
    assert keyed.why == "the API drops duplicates by the key"
    assert isinstance(plain.judgement, Judgement)
