"""Chunks of resumable uploads: ask the session, send only the rest, and one object with the right bytes in the end."""

from typing import Any

import pytest

import forbear
from forbear import Limits
from forbear.events import Reason
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour, Result
from forbear_testkit.clients.wire import Answer, Wire, reply

PIECE = 256 * 1024
DATA = bytes(range(256)) * 2 * 1024  # two pieces
START = "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=big"
SEND, QUERY = "storage.objects.insert.send", "storage.objects.insert.query"


def start(flavour: Flavour, cloud: Cloud) -> str:
    """A new session's URL."""
    started = flavour.call(flavour.transport(cloud_storage.policy), "POST", cloud.url + START)
    location: str = started.response.headers["location"]
    return location


def put(
    flavour: Flavour,
    session: str,
    content: Any,
    span: str | None = None,
    headers: dict[str, str] | None = None,
    policy: forbear.Policy = cloud_storage.policy,
) -> Result:
    """Send a chunk."""
    headers = {**(headers or {}), **({} if span is None else {"Content-Range": f"bytes {span}"})}
    return flavour.call(flavour.transport(policy), "PUT", session, content=content, headers=headers)


def check_stored(cloud: Cloud) -> None:
    """One generation, with the very bytes."""
    assert cloud.store.object("bkt", "big").data == DATA
    assert cloud.effects.count("storage.objects.insert") == 1


FAULTS = {
    "lost before": Fault.reset(when="before", operation=SEND),
    "lost after": Fault.reset(when="after", operation=SEND),
    "refused": Fault.status(503, operation=SEND),
    "refused after all": Fault.status(503, when="after", operation=SEND),
    "throttled": Fault.status(429, operation=SEND),
    "half kept, lost": Fault.partial(300_000),
    "half kept, refused": Fault.partial(300_000, status=500),
    "nothing kept, lost": Fault.partial(0),
    "the reply closed": Fault.close(when="after", operation=SEND),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("span", [None, f"0-{len(DATA) - 1}/{len(DATA)}"], ids=["whole object", "one chunk"])
@pytest.mark.parametrize("one_shot", [False, True], ids=["bytes", "stream"])
def test_a_lost_chunk_is_asked_for_and_completed(
    flavour: Flavour, cloud: Cloud, fault: Fault, span: str | None, one_shot: bool
) -> None:
    """However much of a chunk the session got, it is asked and given the rest, and the object is made once."""
    session = start(flavour, cloud)
    cloud.fault(fault)
    content = flavour.once([DATA[:100_000], DATA[100_000:]]) if one_shot else DATA
    result = put(flavour, session, content, span, {"Content-Length": str(len(DATA))})
    assert (result.status, result.response.json()["size"]) == (200, str(len(DATA)))
    check_stored(cloud)
    done = fault.when == "after" and fault.name.split()[0] != "partial"
    assert (cloud.requests.count(SEND), cloud.requests.count(QUERY)) == (1 if done else 2, 1)
    assert result.open_connections == 0


def test_every_chunk_of_an_upload_can_be_lost(flavour: Flavour, cloud: Cloud) -> None:
    """Chunk after chunk is lost halfway, the last response too, and the bytes are right."""
    session = start(flavour, cloud)
    cloud.fault(
        Fault.partial(1000, nth=1), Fault.partial(77_777, nth=1), Fault.reset(when="after", operation=SEND, nth=2)
    )
    first = put(flavour, session, DATA[:PIECE], f"0-{PIECE - 1}/*")
    assert (first.status, first.response.headers["range"]) == (308, f"bytes=0-{PIECE - 1}")
    second = put(flavour, session, DATA[PIECE:], f"{PIECE}-{2 * PIECE - 1}/{2 * PIECE}")
    assert second.status == 200
    check_stored(cloud)


def test_a_stream_of_unknown_length_is_sent_again_if_nothing_of_it_arrived(flavour: Flavour, cloud: Cloud) -> None:
    """A whole object without a length: the session has all of it or nothing, or the caller hears how much it has."""
    for fault, status in (
        (Fault.reset(when="before", operation=SEND), 200),
        (Fault.reset(when="after", operation=SEND), 200),
    ):
        session = start(flavour, cloud)
        cloud.fault(fault)
        assert put(flavour, session, flavour.once([DATA[:5], DATA[5:]])).status == status
        assert cloud.store.object("bkt", "big").data == DATA
    assert cloud.effects.count("storage.objects.insert") == 2
    stored = Answer(reply(308, b"", "Range: bytes=0-99").data)
    with Wire(Answer(end="reset"), stored) as wire:
        session = wire.url + START + "&upload_id=1"
        result = put(flavour, session, flavour.once([DATA[:5], DATA[5:]]))
        assert (result.status, result.response.headers["range"]) == (308, "bytes=0-99")
        assert [seen.header("content-range") for seen in wire.seen] == [None, "bytes */*"]


@pytest.mark.parametrize("stored", ["", "bytes=0-49", f"bytes=0-{2 * PIECE - 1}"], ids=["nothing", "less", "all"])
def test_what_only_the_caller_can_do_comes_out(flavour: Flavour, stored: str) -> None:
    """A session that lacks bytes before the chunk, or has all of it, answers the caller with its 308."""
    headers = [f"Range: {stored}"] if stored else []
    with Wire(Answer(end="reset"), reply(308, b"", *headers)) as wire:
        session = wire.url + START + "&upload_id=1"
        result = put(flavour, session, DATA[PIECE:], f"{PIECE}-{2 * PIECE - 1}/*")
        assert (result.status, len(wire.seen)) == (308, 2)
        question = wire.seen[1]
        assert (question.body, question.header("content-range")) == (b"", "bytes */*")
        assert (question.header("content-length"), question.header("transfer-encoding")) == ("0", None)


def test_headers_about_the_whole_body_do_not_go_with_a_part_of_it(flavour: Flavour) -> None:
    """A digest of the body and a wish to be asked first are true of the chunk only, not of the question or the rest."""
    answers = (reply(503), reply(308, b"", "Range: bytes=0-9"), reply(200))
    about = {
        "Content-MD5": "abc",
        "Expect": "100-continue",
        "Content-Digest": "sha-256=:abc:",
        "X-Goog-Hash": "crc32c=abc",
    }
    with Wire(*answers) as wire:
        put(flavour, wire.url + START + "&upload_id=1", b"x" * 30, "0-29/30", about)
        names = ("content-md5", "expect", "content-digest", "x-goog-hash")
        assert [[name for name in names if seen.header(name)] for seen in wire.seen] == [
            list(names),
            ["x-goog-hash"],
            ["x-goog-hash"],
        ]
        assert (wire.seen[2].body, wire.seen[2].header("content-length")) == (b"x" * 20, "20")


@pytest.mark.parametrize("status", [404, 410])
def test_a_session_that_is_gone_is_the_callers_to_start_anew(flavour: Flavour, cloud: Cloud, status: int) -> None:
    """404 and 410 are returned, after the query too, with the report of the attempts."""
    session = start(flavour, cloud)
    cloud.fault(Fault.status(503, operation=SEND), Fault.expire_session(status=status, operation=QUERY))
    result = put(flavour, session, DATA)
    assert result.status == status
    assert [attempt.error for attempt in result.report.attempts] == ["HTTP 503", f"HTTP {status}"]
    assert cloud.effects.count("storage.objects.insert") == 0


def test_the_question_is_repeated_as_the_read_that_it_is(flavour: Flavour, cloud: Cloud) -> None:
    """A question that fails is asked again, and Retry-After is obeyed on the way."""
    session = start(flavour, cloud)
    cloud.fault(
        Fault.partial(300_000), Fault.status(503, operation=QUERY, retry_after=20), Fault.reset(operation=QUERY)
    )
    result = put(flavour, session, DATA)
    assert result.status == 200
    assert max(result.slept) >= 20
    check_stored(cloud)


def test_429_is_a_matter_of_the_profile(flavour: Flavour, cloud: Cloud) -> None:
    """To the letter of the page 429 on uploaded data is final, on the question it is not."""
    session = start(flavour, cloud)
    cloud.fault(Fault.status(429, operation=SEND))
    assert put(flavour, session, DATA, policy=cloud_storage.documented).status == 429
    cloud.fault(Fault.status(503, operation=SEND), Fault.status(429, operation=QUERY))
    assert put(flavour, session, DATA, policy=cloud_storage.documented).status == 200
    check_stored(cloud)


def test_progress_gives_patience_anew(flavour: Flavour, cloud: Cloud) -> None:
    """A session that gets on may fail more often than the policy allows; one that does not may not."""
    session = start(flavour, cloud)
    policy = cloud_storage.policy.with_limits(Limits(attempts=3))
    cloud.fault(*(Fault.partial(50_000) for _ in range(8)))
    assert put(flavour, session, DATA, policy=policy).status == 200
    check_stored(cloud)
    stuck = start(flavour, cloud)
    cloud.fault(Fault.partial(50_000), Fault.partial(0, times=None))
    result = put(flavour, stuck, DATA, policy=policy)
    assert isinstance(result.error, flavour.library.ReadError)
    assert result.report.reason is Reason.ATTEMPTS
    assert len(result.report.attempts) == 3


def test_a_session_that_forgets_what_it_had_does_not_get_on(flavour: Flavour) -> None:
    """Only more than ever before is progress, or a session that loses bytes would be tried for ever."""
    more, less = reply(308, b"", "Range: bytes=0-99"), reply(308, b"", "Range: bytes=0-49")
    failed = Answer(end="reset")
    with Wire(failed, less, failed, more, failed, less, failed, more, failed, less, failed, more, failed) as wire:
        session = wire.url + START + "&upload_id=1"
        policy = cloud_storage.policy.with_limits(Limits(attempts=3))
        result = put(flavour, session, DATA, policy=policy)
        assert isinstance(result.error, flavour.library.ReadError)
        assert len(wire.seen) == 9
    assert len(result.report.attempts) == 3


def test_patience_with_a_chunk_begins_with_its_first_failure(flavour: Flavour, cloud: Cloud) -> None:
    """A chunk that took longer to send than the timeout is not given up for that when it breaks."""
    session = start(flavour, cloud)
    cloud.fault(Fault.partial(300_000))
    clocks: list[Any] = []

    def slow(request: Any) -> None:
        clocks[0].advance(1000)

    transport = flavour.transport(cloud_storage.policy, transport=flavour.tampered(slow))
    result = flavour.call(transport, "PUT", session, content=DATA, clock=clocks.append)
    assert result.status == 200
    check_stored(cloud)


def test_a_stream_beyond_the_buffer_still_learns_whether_it_arrived(flavour: Flavour, cloud: Cloud) -> None:
    """A chunk that cannot be sent again: the session is asked all the same, for it may have everything."""
    for fault, status in ((Fault.reset(when="after", operation=SEND), 200), (Fault.partial(300_000), 308)):
        session = start(flavour, cloud)
        cloud.fault(fault)
        headers = {"Content-Length": str(len(DATA))}
        transport = flavour.transport(cloud_storage.policy, buffer=10)
        result = flavour.call(transport, "PUT", session, content=flavour.once([DATA]), headers=headers)
        assert result.status == status
    assert cloud.effects.count("storage.objects.insert") == 1


def test_the_error_of_the_callers_stream_comes_out_of_a_chunk_too(flavour: Flavour, cloud: Cloud) -> None:
    """A session is not asked after a stream that failed by itself; its error must not be answered with a 308."""
    session = start(flavour, cloud)
    error = ConnectionResetError("the source broke")
    result = put(flavour, session, flavour.once([DATA[:PIECE]], error), None, {"Content-Length": str(len(DATA))})
    assert result.error is error
    assert cloud.requests.count(QUERY) == 0


def test_a_chunk_whose_headers_make_no_sense_is_sent_once(flavour: Flavour) -> None:
    """A chunk whose headers do not say which bytes it has is not sent again."""
    for span in ("5-4/10", "x-4/10", "1-2-3/10", "5/10"):
        with Wire(reply(503)) as wire:
            result = put(flavour, wire.url + START + "&upload_id=1", b"x", span)
            assert (result.status, len(wire.seen)) == (503, 1)
        assert result.report.reason is Reason.UNSAFE


def test_a_final_response_that_breaks_off_is_asked_for_again(flavour: Flavour, cloud: Cloud) -> None:
    """The session knows the object, so its description is not lost with the response."""
    session = start(flavour, cloud)
    cloud.fault(Fault.truncate(5, operation=SEND))
    result = put(flavour, session, DATA)
    assert (result.status, result.response.json()["size"]) == (200, str(len(DATA)))
    check_stored(cloud)


def test_a_transport_that_reads_requests_finds_what_is_sent(flavour: Flavour) -> None:
    """The request for the rest of a chunk has the rest for its content; the caller's own stays as it was."""
    seen = list[tuple[bytes, dict[str, str]]]()
    answers = [(503, {}), (308, {"Range": "bytes=0-1"}), (200, {})]

    def answer(request: Any) -> Any:
        seen.append((request.content, dict(request.headers)))
        status, headers = answers.pop(0)
        return flavour.library.Response(status, headers=headers)

    transport = flavour.transport(cloud_storage.policy, transport=flavour.library.MockTransport(answer))
    url = "http://localhost/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=1"
    result = flavour.call(transport, "PUT", url, content=b"abcdef", headers={"Content-Range": "bytes 0-5/6"})
    assert result.status == 200
    assert [content for content, _ in seen] == [b"abcdef", b"", b"cdef"]
    assert [headers["content-range"] for _, headers in seen] == ["bytes 0-5/6", "bytes */6", "bytes 2-5/6"]
    own = result.response.request
    assert (own.content, own.headers["content-range"]) == (b"abcdef", "bytes 0-5/6")
