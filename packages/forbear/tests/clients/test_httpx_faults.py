"""Faults outside the table of statuses: Retry-After, stalls, broken responses, limits, the connection afterwards."""

from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

import forbear
from forbear import Constant, Limits
from forbear.events import Reason
from forbear.services import cloud_storage, rfc9110
from forbear.testing.virtual_clock import VirtualTime
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

URL = "http://localhost"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
THERE = "/storage/v1/b/bkt/o/there"


def impatient(flavour: Flavour) -> Any:
    """A plain transport whose first request has a short read timeout, and no other: the machine may be busy."""
    left = [0.05]

    def before(request: Any) -> None:
        if left:
            request.extensions["timeout"] = {**request.extensions["timeout"], "read": left.pop()}

    return flavour.tampered(before)


@EVERY
@pytest.mark.parametrize("asked", [17, "a date"])
def test_waits_as_long_as_the_server_asks(flavour: Flavour, cloud: Cloud, asked: int | str) -> None:
    """Retry-After is obeyed, in seconds and as a date against the response's own clock, with jitter on top."""
    cloud.store.put("bkt", "there", b"abc")
    retry_after = asked if isinstance(asked, int) else formatdate(cloud.store.now() + 17, usegmt=True)
    cloud.fault(Fault.status(503, retry_after=retry_after))
    result = flavour.call(flavour.transport(cloud_storage.policy), "GET", cloud.url + THERE)
    assert result.status == 200
    assert [15 < delay < 20 for delay in result.slept] == [True]


@EVERY
def test_of_two_waits_the_longer_one_counts(flavour: Flavour) -> None:
    """A Retry-After that came twice, from a server and a proxy before it, is obeyed to the longer one."""
    with Wire(reply(503, b"", "Retry-After: 17", "Retry-After: 5"), reply(200)) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url)
        wire.answers.insert(0, reply(503, b"", "Retry-After: 5", "Retry-After: 17"))
        again = flavour.call(flavour.transport(), "GET", wire.url)
    assert [15 < delay < 20 for delay in (*result.slept, *again.slept)] == [True, True]


@EVERY
def test_a_date_without_the_servers_clock_is_read_against_that_of_the_run(flavour: Flavour) -> None:
    """If a response has no Date, its Retry-After is read against the clock of the run: a virtual one in tests."""

    def later(clock: VirtualTime) -> None:
        clock.advance(1000)
        wire.answers.insert(0, reply(503, b"", "Retry-After: " + formatdate(clock.now + 17, usegmt=True)))

    with Wire(reply(200)) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url, clock=later)
    assert result.status == 200
    assert [15 < delay < 20 for delay in result.slept] == [True]


@EVERY
def test_gives_up_where_the_server_asks_for_too_long_a_wait(flavour: Flavour, cloud: Cloud) -> None:
    """A Retry-After beyond the timeout ends the run at once; nobody comes back earlier than asked."""
    cloud.fault(Fault.status(429, retry_after=9999))
    result = flavour.call(flavour.transport(cloud_storage.policy), "GET", cloud.url + THERE)
    assert (result.status, result.slept, len(cloud.requests)) == (429, [], 1)
    assert result.report.reason is Reason.RETRY_AFTER


@pytest.mark.parametrize(
    ("method", "target", "again"),
    [
        ("GET", THERE, 200),
        ("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=new&ifGenerationMatch=0", 412),
        ("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=new", None),
    ],
)
def test_a_response_that_does_not_come_has_an_unknown_outcome(
    flavour: Flavour, cloud: Cloud, method: str, target: str, again: int | None
) -> None:
    """A read timeout after the effect is repeated where that is safe, and raised where it is not."""
    cloud.store.put("bkt", "there", b"abc")
    cloud.fault(Fault.delay(60, when="after"))
    transport = flavour.transport(cloud_storage.policy, transport=impatient(flavour))
    content = b"abc" if method == "POST" else None
    result = flavour.call(transport, method, cloud.url + target, content=content)
    assert cloud.effects.count("storage.objects.insert") == (method == "POST")
    if again is None:
        assert isinstance(result.error, flavour.library.ReadTimeout)
        assert result.report.reason is Reason.UNSAFE
    else:
        assert result.status == again


@EVERY
@pytest.mark.parametrize(
    ("target", "method", "outcome"),
    [
        ("/upload/storage/v1/b/bkt/o?uploadType=media&name=new&ifGenerationMatch=0", "POST", "done"),
        ("/upload/storage/v1/b/bkt/o?uploadType=media&name=new", "POST", "done"),
        ("/storage/v1/b/bkt/o/there", "GET", "again"),
        ("/storage/v1/b?project=p", "POST", "conflict"),
    ],
)
def test_a_response_that_breaks_off_says_that_it_is_done(
    flavour: Flavour, cloud: Cloud, target: str, method: str, outcome: str
) -> None:
    """Operations that may always be repeated are; a write whose status says success is not tried once more."""
    cloud.store.put("bkt", "there", b"abc")
    cloud.fault(Fault.truncate(5))
    json, content = ({"name": "fresh"}, None) if outcome == "conflict" else (None, b"abc" if method == "POST" else None)
    transport = flavour.transport(cloud_storage.policy)
    result = flavour.call(transport, method, cloud.url + target, json=json, content=content)
    assert cloud.effects.count() == (method == "POST")
    assert result.open_connections == 0
    if outcome == "done":
        assert isinstance(result.error, flavour.library.RemoteProtocolError)
        assert len(cloud.requests) == 1
        assert result.report.text == "storage.objects.insert answered 200 OK before its response broke off"
        assert result.report.maybe_done
    else:
        assert len(cloud.requests) == 2
        assert result.status == (409 if outcome == "conflict" else 200)
    if outcome == "conflict":
        assert result.report.maybe_done


@EVERY
@pytest.mark.parametrize(
    ("method", "header", "requests"), [("PUT", None, 2), ("POST", "Idempotency-Key", 2), ("POST", None, 1)]
)
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_response_that_breaks_off_elsewhere(
    flavour: Flavour, method: str, header: str | None, requests: int, end: str
) -> None:
    """At other hosts a PUT and a request with a key are sent again for their response, a bare POST is not."""
    with Wire(reply(201, b"hal", length=6, end=end), reply(200, b"whole!")) as wire:
        apis = [] if header is None else [forbear.Api(wire.url, key=forbear.IdempotencyKey(header, add=True))]
        result = flavour.call(flavour.transport(apis=apis), method, wire.url, content=b"x")
        assert len(wire.seen) == requests
    if requests == 2:
        assert result.content == b"whole!"
    else:
        assert result.notes[0].endswith(
            "the request answered 201 Created before its response broke off; the attempt may have worked [unsafe]"
        )


@EVERY
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize(
    ("status", "done", "requests"), [(200, True, 1), (201, True, 1), (302, True, 1), (404, False, 1), (503, False, 1)]
)
@pytest.mark.parametrize("form", ["short", "long", "chunked"])
def test_a_policy_around_the_client_does_not_repeat_what_is_refused_here(
    flavour: Flavour, form: str, status: int, done: bool, requests: int, end: str
) -> None:
    """However the response to a bare POST breaks, its error has a report, and an outer policy sends nothing more."""
    if form == "chunked":
        broken = Answer(CHUNKED.replace(b"200", b"%d" % status), end)
    else:
        broken = reply(status, b"abc", length=100 if form == "short" else 100_000, end=end)
    outer = forbear.retry(on=flavour.library.TransportError, attempts=4, backoff=Constant(0))

    def post() -> Any:
        result = flavour.call(flavour.transport(), "POST", wire.url, content=b"x", stop_after=10**7)
        if result.error is not None:
            raise result.error
        return result

    with Wire(broken) as wire:
        with pytest.raises(flavour.library.TransportError) as caught:
            outer.call(post)
        assert len(wire.seen) == 1
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.maybe_done) == (Reason.UNSAFE, done)
    assert [note.partition(" in ")[0] for note in caught.value.__notes__] == ["forbear: gave up after 1 attempt"]


@EVERY
@pytest.mark.parametrize("form", ["short", "chunked"])
def test_the_broken_body_of_a_response_that_was_given_up_tells_why(flavour: Flavour, form: str) -> None:
    """If the last response breaks as well, its error carries the report of the attempts, and none is added to them."""
    failed = Answer(CHUNKED.replace(b"200", b"503"), "close")
    if form == "short":
        failed = reply(503, b"abc", length=100, end="close")
    policy = rfc9110.policy.with_attempts(3)
    with Wire(failed) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url, stop_after=10**7)
        assert len(wire.seen) == 3
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert result.report.reason is Reason.ATTEMPTS
    assert [attempt.error for attempt in result.report.attempts] == ["HTTP 503"] * 3
    assert len(result.notes) == 1


@EVERY
@pytest.mark.parametrize("broken", [reply(200, b"x", length=10**6, end="close"), Answer(CHUNKED, "close")])
def test_a_long_response_to_a_write_is_returned_as_it_comes(flavour: Flavour, broken: Answer) -> None:
    """A response that is long, or may be, is not waited for: if it breaks, the client says so."""
    with Wire(broken) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=b"x", stop_after=10**6)
        assert len(wire.seen) == 1
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert (result.content, result.notes) == (b"x", [])


@EVERY
def test_the_last_response_is_returned_as_by_the_plain_client(flavour: Flavour, cloud: Cloud) -> None:
    """After the last attempt its response has its status, headers and body, and the report beside them."""
    cloud.fault(Fault.status(503, message="worn out", times=None))
    policy = cloud_storage.policy.with_attempts(3)
    result = flavour.call(flavour.transport(policy), "GET", cloud.url + THERE)
    assert (result.status, len(cloud.requests)) == (503, 3)
    assert b"worn out" in result.content
    assert result.response.json()["error"]["code"] == 503
    assert [(attempt.error, attempt.text) for attempt in result.report.attempts] == [
        ("HTTP 503", "503 Service Unavailable")
    ] * 3
    with pytest.raises(flavour.library.HTTPStatusError) as caught:
        result.response.raise_for_status()
    if flavour.name != "aiohttp":  # its errors do not know the response they are of
        assert forbear.report(caught.value) is result.report
    assert result.report.note.startswith("forbear: gave up after 3 attempts in ")


def test_the_last_error_is_raised_with_one_note(flavour: Flavour, cloud: Cloud) -> None:
    """The client's own last error is raised, with one note of the attempts."""
    cloud.fault(Fault.reset(times=None))
    policy = rfc9110.policy.with_limits(Limits(attempts=2, timeout=None))
    result = flavour.call(flavour.transport(policy), "GET", cloud.url + THERE)
    assert isinstance(result.error, flavour.library.ReadError)
    (note,) = result.notes
    assert note.startswith("forbear: gave up after 2 attempts in ")


@EVERY
def test_a_permanent_failure_is_returned_without_a_report(flavour: Flavour, cloud: Cloud) -> None:
    """A response that no repeat would change has no report, and costs no wait."""
    result = flavour.call(flavour.transport(cloud_storage.policy), "GET", cloud.url + THERE)
    assert (result.status, result.slept) == (404, [])
    assert forbear.report(result.response) is None


@EVERY
@pytest.mark.parametrize(
    "failed",
    [
        reply(503, b"x" * 10, length=100, end="stall"),
        reply(503, b"x" * 10, length=100_000, end="stall"),
        Answer(CHUNKED.replace(b"200", b"503"), "stall"),
        reply(503, b"", "Transfer-Encoding: chunked", end="stall"),
    ],
    ids=["short", "long", "of unknown length", "of two lengths"],
)
def test_a_failed_response_is_closed_at_its_status(flavour: Flavour, failed: Answer) -> None:
    """A failed response is closed as soon as its status is known, however much of it is missing."""
    with Wire(failed, reply(200, b"ok")) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url)
        assert (result.content, wire.connections, result.open_connections) == (b"ok", 2, 0)


def test_no_attempt_starts_after_the_deadline_where_failed_responses_stall(flavour: Flavour) -> None:
    """The body of a failed response is not read between the decision and the next attempt, so it costs no time."""
    clocks: list[VirtualTime] = []
    begun: list[float] = []

    def stalls() -> Iterator[bytes]:
        clocks[0].advance(5)
        yield b"abc"

    def answer(request: Any) -> None:
        begun.append(clocks[0].elapsed)

    policy = rfc9110.policy.with_limits(Limits(attempts=10, timeout=2)).with_backoff(Constant(0.5))
    played = flavour.played(*[(503, {"Content-Length": "100"}, stalls)] * 10)
    transport = flavour.transport(policy, transport=flavour.tampered(answer, played))
    result = flavour.call(transport, "GET", URL, clock=clocks.append)
    assert begun == [0, 0.5, 1, 1.5, 2]
    assert result.report.reason is Reason.TIMEOUT
