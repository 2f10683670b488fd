"""Hostile texts and bodies, through everything that reads what a peer sent: bounded work, and no stray errors."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from forbear.grpc import status as grpc_status
from forbear.http import ranges
from forbear.http.preconditions import has_field, has_strong_tag
from forbear.http.request import Request
from forbear.http.status import parse_retry_after
from forbear.services import cloud_storage, iam, memorystore, registry, rfc9110
from forbear.tables import google_apis
from forbear.tables.conditions import has_in_every_entry, is_positive
from forbear.text.redact import redact
from forbear.waits import UNITS, find_wait, find_wait_of_rpc
from forbear_testkit.hostile.bounds import MIB, Bounded, Limits
from forbear_transfer.errors import HttpError, TransferError, WrongResponse
from forbear_transfer.objects import Object
from forbear_transfer.uploads.session import SessionState

SIZE = 20_000
"""Bytes of a text, of which twice as many follow."""

WIDE = Limits(memory=64 * MIB, calls=5_000_000)
WAITS = dict(zip(("x-a", "x-b", "x-c", "x-d", "x-reset", "x-f"), UNITS, strict=True)) | {"ratelimit": "seconds"}
JSON = {"content-type": "application/json"}
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


def _classified(service: Any, host: str, method: str) -> Callable[[str], object]:
    return lambda text: service.classify(Request(method, host, f"/{text}", {"if-match": text}, text.encode()))


PARSERS: dict[str, Callable[[str], object]] = {
    "redact": redact,
    "Retry-After": lambda text: parse_retry_after(text, DATE, 0.0),
    "Date": lambda text: parse_retry_after(DATE, text, 0.0),
    "the headers of waits": lambda text: find_wait(dict.fromkeys(WAITS, text), 429, units=WAITS, now=lambda: 0.0),
    "a wait in JSON": lambda text: find_wait(JSON, 429, body=text.encode),
    "a wait in protobuf": lambda text: find_wait({"content-type": "application/x-protobuf"}, 429, body=text.encode),
    "Content-Range": ranges.parse,
    "Content-Length": ranges.number,
    "If-Match": lambda text: has_strong_tag({"if-match": text}),
    "a body of JSON": lambda text: has_field(text.encode(), "etag"),
    "a body of XML": lambda text: has_in_every_entry(text.encode(), "Object", "VersionId", is_positive),
    "an error's status": lambda text: google_apis.error_status(text.encode()),
    "an error's reasons": lambda text: google_apis.error_reasons(text.encode()),
    "gRPC's pushback": lambda text: find_wait_of_rpc((("grpc-retry-pushback-ms", text),)),
    "gRPC's details": lambda text: find_wait_of_rpc((("grpc-status-details-bin", text.encode()),)),
    "protobuf": lambda text: grpc_status.parts(text.encode()),
    "a host": lambda text: registry.find(text, text),
    "Cloud Storage, JSON": _classified(cloud_storage.policy.service, "storage.googleapis.com", "POST"),
    "Cloud Storage, XML": _classified(cloud_storage.policy.service, "b.storage.googleapis.com", "PUT"),
    "IAM": _classified(iam.policy.service, "iam.googleapis.com", "POST"),
    "Memorystore": _classified(memorystore.policy.service, "redis.googleapis.com", "PATCH"),
    "any host": _classified(rfc9110.policy.service, "example.com", "PATCH"),
    "an error's message": lambda text: str(HttpError("look", 400, text)),
    "the range of a session": lambda text: SessionState(size=9).responded(308, {"range": text}, transient=False),
}  # fmt: skip

PIECES = [
    ",", "a,", "(", "1 ", "9", "-", "/", "a/", "../", "=", "&a=b", "%41", "%", '"', '"a",', "[", '{"error":',
    '{"etag":"', "[1,", "<a>", "<a><b/>", "</a>", "&#49;", "<!--", '<!DOCTYPE a [<!ENTITY b "c">', "\\", "\x00",
    "\ud7ff",
    "\x1b[2J", "bytes 0-", "06 Nov 1994 08:49:37 GMT,", ":", "a:", ".", "\n", "\x0a\x02", "\xff", "eyJ", "token=",
    "://",
]  # fmt: skip


def _cost(parse: Callable[[str], object], text: str) -> int:
    with Bounded(WIDE) as bounded:
        parse(text)
    return bounded.calls


@pytest.mark.parametrize("name", PARSERS)
def test_twice_the_text_is_at_most_three_times_the_calls(name: str) -> None:
    """No text makes a parser raise, and none makes it call functions as often as the square of its length."""
    parse = PARSERS[name]
    parse("")
    for piece in PIECES[:: 2 if name == "a body of XML" else 6]:
        once, twice = (_cost(parse, piece * (size // len(piece))) for size in (SIZE // 8, SIZE // 4))
        assert twice <= 3 * once + 1000, piece


@pytest.mark.soak
@pytest.mark.parametrize("before", ["", '{"error":{"status":', "<Delete><Object><VersionId>", "bytes=0-", "9" * 4301])
@pytest.mark.parametrize("name", PARSERS)
def test_so_it_is_for_every_text(name: str, before: str) -> None:
    """The same for all texts, alone and behind a beginning that is right."""
    parse = PARSERS[name]
    parse("")
    for piece in PIECES:
        once, twice = (_cost(parse, before + piece * (size // len(piece))) for size in (SIZE, 2 * SIZE))
        assert twice <= 3 * once + 1000, piece


@dataclass(frozen=True)
class Field:
    """A field of a listing that is not what it should be."""

    name: str
    value: object


GOOD = {"bucket": "b", "name": "n", "generation": "1", "size": "3", "updated": "2026-01-01T00:00:00Z"}
FIELDS = [
    Field("bucket", 1), Field("name", None), Field("name", ["n"]), Field("name", {}), Field("generation", "x"),
    Field("generation", "-1"), Field("generation", None), Field("generation", "9" * 30),
    Field("generation", "9" * 4400),
    Field("generation", float("inf")), Field("generation", float("nan")), Field("size", "-1"), Field("size", 1e999),
    Field("size", 2**63), Field("size", "9" * 4400), Field("size", []), Field("metageneration", -1),
    Field("updated", 7),
    Field("updated", "9999-99-99T00:00:00Z"),
    Field("updated", "x" * 9999),
]  # fmt: skip


@pytest.mark.parametrize(
    "field", FIELDS, ids=lambda field: f"{field.name}={str(field.value)[:12]}:{len(str(field.value))}"
)
def test_a_listing_with_a_wrong_field_is_a_wrong_response(field: Field) -> None:
    """Whatever a listing has for a name or a number, the error is one of transfers, and short."""
    with pytest.raises(WrongResponse) as caught:
        Object.of({**GOOD, field.name: field.value})
    assert len(str(caught.value)) < 5000


@pytest.mark.parametrize("body", ["{", "[" * 100_000, "9" * 5000, '{"a":' * 100_000, '"\\ud800"', "NaN", ""])
def test_a_response_that_is_no_object_is_a_wrong_response(body: str) -> None:
    """Nested without end, or a number of thousands of digits: an error of transfers."""
    from forbear_transfer.storage.bodies import WholeResponse

    with Bounded(Limits()), pytest.raises(TransferError):
        WholeResponse(200, {}, body.encode()).json()


def test_an_error_of_many_parts_is_read_up_to_a_bound() -> None:
    """A body of more than 1 MiB is no error that a service would send, and is not parsed."""
    many = json.dumps({"error": {"status": "ABORTED", "errors": [{}] * 600_000}}).encode()
    with Bounded(Limits()):
        assert google_apis.error_status(many) is None
