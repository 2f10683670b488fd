"""APIs through every adapter: their statuses, waits, refusals, keys and redirects."""

import gzip
import json
from typing import Any

import pytest

import forbear
from forbear.core.decide import Reason
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import BLIND_TOO, EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

FINE = reply(200)
SLOW = ("Date: Sun, 06 Nov 1994 08:49:37 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 784111817")
GITHUB: dict[str, Any] = {"throttles": [403], "wait_headers": {"x-ratelimit-reset": "epoch"}}


def follow(flavour: Flavour) -> dict[str, Any]:
    """Return the options by which a client follows redirects."""
    return {"client": {"follow_redirects": True}} if "httpx" in flavour.name else {}


@BLIND_TOO
@pytest.mark.parametrize(
    ("known", "failure", "requests"),
    [
        ({"transient": [409]}, reply(409), 2),
        ({"transient": [529]}, reply(529), 2),
        ({}, reply(529), 1),
        (GITHUB, reply(403, b"", *SLOW), 2),
        (GITHUB, reply(403), 1),
        ({"retry_headers": "x-should-retry"}, reply(503, b"", "X-Should-Retry: false"), 1),
        ({"retry_headers": "x-should-retry"}, reply(400, b"", "X-Should-Retry: true"), 2),
    ],
    ids=range(7),
)
def test_statuses_of_an_api(flavour: Flavour, known: dict[str, Any], failure: Answer, requests: int) -> None:
    """A read is repeated after the statuses that the API calls transient, and not against its word."""
    with Wire(failure, FINE) as wire:
        flavour.call(flavour.transport(apis=forbear.Api(wire.url, **known)), "GET", wire.url)
        assert len(wire.seen) == requests


@BLIND_TOO
def test_a_wait_in_a_header_of_the_api(flavour: Flavour) -> None:
    """The moment at which the quota comes back is read against the response's own date, and named."""
    events: list[forbear.events.Event] = []
    policy = forbear.retry(on=Exception, attempts=2, timeout=None, on_event=events.append)
    with Wire(reply(403, b"", *SLOW), FINE) as wire:
        flavour.call(flavour.transport(policy, apis=forbear.Api(wire.url, **GITHUB)), "GET", wire.url)
    (scheduled,) = (event for event in events if isinstance(event, forbear.events.Scheduled))
    assert 40 <= scheduled.delay <= 45
    assert scheduled.wait_from == "x-ratelimit-reset"


@EVERY
@pytest.mark.parametrize("known", [{"transient": [409]}, {"retry_headers": "x-should-retry"}])
def test_a_transient_status_makes_no_write_safe(flavour: Flavour, known: dict[str, Any]) -> None:
    """A POST is sent once, whatever the server says of retries."""
    with Wire(reply(409, b"", "X-Should-Retry: true"), FINE) as wire:
        result = flavour.call(
            flavour.transport(apis=forbear.Api(wire.url, **known)), "POST", f"{wire.url}/orders", content=b"x"
        )
        assert (len(wire.seen), result.report.reason) == (1, Reason.UNSAFE)


@EVERY
@pytest.mark.parametrize(("path", "requests"), [("/search:all", 2), ("/orders", 1)])
def test_safe_requests_of_an_api(flavour: Flavour, path: str, requests: int) -> None:
    """Patterns of an API have no origin, and count at its own."""
    with Wire(reply(503), FINE) as wire:
        transport = flavour.transport(apis=[forbear.Api(wire.url, safe="POST /search*")])
        flavour.call(transport, "POST", wire.url + path, content=b"q")
        assert len(wire.seen) == requests


@EVERY
@pytest.mark.parametrize(
    "known", [{"safe": "POST /pay"}, {"not_executed": [503]}, {"key": forbear.IdempotencyKey("X-Key", add=True)}]
)
def test_a_redirect_elsewhere_leaves_the_api_behind(flavour: Flavour, known: dict[str, Any]) -> None:
    """Nothing that was said of one origin counts at another."""
    with Wire(reply(503), FINE) as other, Wire(reply(307, b"", f"Location: {other.url}/pay")) as wire:
        transport = flavour.transport(apis=forbear.Api(wire.url, **known))
        assert flavour.call(transport, "POST", f"{wire.url}/pay", content=b"x", **follow(flavour)).status == 503
        assert [seen.header("x-key") for seen in other.seen] == [None]


@EVERY
def test_another_host_in_the_header_gets_no_key(flavour: Flavour) -> None:
    """A request whose Host header names another host is none to the API: it has no key, and no repeat."""
    key = forbear.IdempotencyKey("X-Key", add=True)
    with Wire(reply(503), FINE) as wire:
        transport = flavour.transport(apis=forbear.Api(wire.url, key=key))
        flavour.call(transport, "POST", wire.url, content=b"x", headers={"Host": "other.example.com"})
        assert [seen.header("x-key") for seen in wire.seen] == [None]


@EVERY
def test_no_request_is_repeated_by_a_key_that_is_forgotten(flavour: Flavour) -> None:
    """Without a span, a key counts for 4.5 minutes: a longer wait stops the run (K6)."""
    key = forbear.IdempotencyKey("X-Key", add=True)
    policy = forbear.retry(on=Exception, attempts=9, max_retry_after=3600)
    for known, requests in ((key, 1), (key.replace(hours=1), 2)):
        with Wire(reply(503, b"", "Retry-After: 280"), FINE) as wire:
            transport = flavour.transport(policy, apis=forbear.Api(wire.url, key=known))
            flavour.call(transport, "POST", wire.url, content=b"x")
            assert len(wire.seen) == requests


@EVERY
@pytest.mark.parametrize(("method", "wait"), [("POST", 1000), ("PUT", 280)])
def test_the_span_of_a_key_is_no_timeout(flavour: Flavour, method: str, wait: int) -> None:
    """A key that counts for long permits no wait above `max_retry_after`; one that is not needed stops nothing."""
    key = forbear.IdempotencyKey("X-Key", add=True, hours=24 if method == "POST" else None)
    with Wire(reply(503, b"", f"Retry-After: {wait}"), FINE) as wire:
        transport = flavour.transport(attempts=3, apis=forbear.Api(wire.url, key=key))
        result = flavour.call(transport, method, wire.url, content=b"x")
        assert len(wire.seen) == (1 if method == "POST" else 2)
    if method == "POST":
        assert "more than max_retry_after=900 s" in result.report.text


@EVERY
def test_a_key_in_use_that_must_not_be_sent_again(flavour: Flavour) -> None:
    """The word of the server against a retry counts for a 409, too, also in two lines."""
    api: dict[str, Any] = {"key": forbear.IdempotencyKey("X-Key"), "retry_headers": "x-should-retry"}
    for lines, requests in (((), 2), (("X-Should-Retry: false",), 1), (("X-Should-Retry: false",) * 2, 1)):
        with Wire(reply(409, b"", *lines), FINE) as wire:
            transport = flavour.transport(apis=forbear.Api(wire.url, **api))
            flavour.call(transport, "POST", wire.url, content=b"x", headers={"X-Key": "17"})
            assert len(wire.seen) == requests


def test_urllib3_refuses_what_it_cannot_see() -> None:
    """Its Retry object sees neither headers nor bodies: only statuses and waits of an API count."""
    from forbear.clients.urllib3 import Retry

    Retry(apis=forbear.Api("https://api.example.com", transient=[409]))
    words: list[dict[str, Any]] = [
        {"safe": "POST /x"},
        {"service": "iam"},
        {"key": forbear.IdempotencyKey("K")},
        {"not_executed": [429]},
    ]
    for known in words:
        api = forbear.Api("https://api.example.com", **known)
        with pytest.raises(TypeError, match=f"`apis` with `{next(iter(known))}` needs the headers"):
            Retry(apis=[api])


@BLIND_TOO
@pytest.mark.parametrize(
    ("lines", "least", "name"),
    [
        (["Retry-After: 9"], 9, "Retry-After"),
        (["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:49:46 GMT"], 9, "Retry-After"),
        (["retry-after-ms: 8500"], 8.5, "retry-after-ms"),
        (["x-ms-retry-after-ms: 8500"], 8.5, "x-ms-retry-after-ms"),
        (["Retry-After: 60", "retry-after-ms: 100"], 60, "Retry-After"),
        (["Retry-After: 9", "retry-after-ms: 8500"], 8.5, "retry-after-ms"),
        (['RateLimit: "burst";r=0;t=9'], 9, "RateLimit"),
        (["RateLimit-Remaining: 0", "RateLimit-Reset: 9"], 9, "RateLimit-Reset"),
        (["RateLimit-Remaining: 5", "RateLimit-Reset: 9"], 0, None),
        (["X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"], 0, None),
        (["x-amz-retry-after: 8500"], 0, None),
        (["retry-after-ms: -1", "Retry-After: soon"], 0, None),
        (['RateLimit: "burst";r=5;t=1', 'RateLimit: "day";r=0;t=9'], 9, "RateLimit"),
    ],
    ids=range(13),
)
def test_headers_of_any_host(flavour: Flavour, lines: list[str], least: float, name: str | None) -> None:
    """Each client obeys each header that any server may send, and ignores those whose unit it cannot know."""
    events: list[forbear.events.Event] = []
    policy = forbear.retry(on=Exception, attempts=2, timeout=None, on_event=events.append)
    with Wire(reply(429, b"", *lines), FINE) as wire:
        flavour.call(flavour.transport(policy), "GET", wire.url)
    (scheduled,) = (event for event in events if isinstance(event, forbear.events.Scheduled))
    assert scheduled.wait_from == name
    assert least <= scheduled.delay <= least * 1.1 + 1


@EVERY
def test_a_wait_that_is_too_long_ends_the_run(flavour: Flavour) -> None:
    """A daily quota is not hammered: the run stops at once and names the header (W2)."""
    with Wire(reply(429, b"", "retry-after-ms: 86400000"), FINE) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url)
        assert len(wire.seen) == 1
    assert result.report.reason is Reason.RETRY_AFTER
    assert "(retry-after-ms)" in result.report.text


RETRY_INFO = json.dumps(
    {"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "53s"}]}}
).encode()


OBJECT = RETRY_INFO.replace(b'"53s"', b'{"seconds": 53}')


def pack(field: int, content: bytes) -> bytes:
    """Return a field of a protobuf message that holds bytes, fewer than 128."""
    return bytes((field << 3 | 2, len(content))) + content


DURATION = pack(1, bytes((1 << 3, 53)))
PROTO = pack(3, pack(1, b"type.googleapis.com/google.rpc.RetryInfo") + pack(2, DURATION))
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(RETRY_INFO), RETRY_INFO)
KIND = "Content-Type: application/json; charset=UTF-8"

BODIES = {
    "object": (RETRY_INFO, reply(429, RETRY_INFO, KIND)),
    "list": (b"[%s]" % RETRY_INFO, reply(429, b"[%s]" % RETRY_INFO, KIND)),
    "duration": (OBJECT, reply(503, OBJECT, KIND)),
    "coded": (RETRY_INFO, reply(429, gzip.compress(RETRY_INFO), KIND, "Content-Encoding: gzip")),
    "proto": (PROTO, reply(429, PROTO, "Content-Type: application/x-protobuf")),
    "chunked": (
        RETRY_INFO,
        Answer(f"HTTP/1.1 429 Whatever\r\n{KIND}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + CHUNKED, "keep"),
    ),
}


@EVERY
@pytest.mark.parametrize("form", BODIES)
def test_a_wait_in_a_body(flavour: Flavour, form: str) -> None:
    """RetryInfo in the body of an error is obeyed in every form, and the caller still gets the whole body."""
    content, busy = BODIES[form]
    events: list[forbear.events.Event] = []
    policy = forbear.retry(on=Exception, attempts=2, timeout=None, on_event=events.append)
    with Wire(busy) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url)
        assert len(wire.seen) == 2
    assert result.content == content
    (scheduled,) = (event for event in events if isinstance(event, forbear.events.Scheduled))
    assert 53 <= scheduled.delay <= 60
    assert scheduled.wait_from == "RetryInfo"


@EVERY
def test_a_torn_body_of_an_error(flavour: Flavour) -> None:
    """An error whose body breaks off is judged as a lost response: a read is repeated, a POST is not."""
    torn = reply(429, b'{"err', "Content-Type: application/json", length=100, end="close")
    for method, requests in (("GET", 2), ("POST", 1)):
        with Wire(torn, FINE) as wire:
            flavour.call(flavour.transport(), method, wire.url, content=b"x" if method == "POST" else None)
            assert len(wire.seen) == requests


@EVERY
def test_a_body_that_cannot_be_decoded(flavour: Flavour) -> None:
    """It asks for nothing, and the status and the headers count as if nobody had looked at it."""
    busy = reply(429, b"plain", "Content-Type: application/json", "Content-Encoding: gzip")
    for method, content in (("GET", None), ("POST", b"x")):
        with Wire(busy, FINE) as wire:
            transport = flavour.transport(apis=forbear.Api(wire.url, not_executed=[429]))
            assert flavour.call(transport, method, wire.url, content=content).status == 200
