"""Downloads whose rest cannot be had: they start over, and no byte comes twice, is left out or is of something else."""

import gzip

import pytest

from forbear.events import Reason
from forbear.services import cloud_storage, rfc9110
from forbear.testing.virtual_clock import VirtualTime
from forbear_testkit.clients.downloads import (
    DATA,
    ETAG,
    EVERY,
    GZIP,
    LEFT_BEFORE_ITS_END,
    PACKED,
    RANGE,
    STREAM,
    chunked,
    cut,
    fetch,
    head,
    span,
)
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import OTHERS
from forbear_testkit.clients.wire import Answer, Wire, reply

ANEW = gzip.compress(DATA, mtime=2)
"""The same again from a server that packs while it sends: other bytes under the same ETag."""


class Files(Wire):
    """A server that has one answer to requests for a range, and others, in turn, to those for the whole."""

    def __init__(self, ranged: Answer, *answers: Answer) -> None:
        super().__init__(*answers)
        self.ranged = ranged

    def _next(self, head: bytes) -> Answer:
        return self.ranged if b"\r\nrange:" in head.lower() else super()._next(head)


PLAIN_REST = reply(206, DATA[20:], ETAG, span(20))
PACKED_WHOLE = reply(200, PACKED, ETAG, GZIP)
IDENTITY = "Content-Encoding: identity"
CODINGS = [
    (cut(PACKED, ETAG, GZIP), PLAIN_REST, PACKED_WHOLE),
    (cut(PACKED, ETAG, GZIP), reply(206, PACKED[20:], ETAG, span(20, PACKED)), PACKED_WHOLE),
    (cut(PACKED, ETAG, GZIP), reply(206, PACKED[20:], ETAG, span(20, PACKED), GZIP), PACKED_WHOLE),
    (cut(PACKED, ETAG, GZIP), reply(200, DATA, ETAG), PACKED_WHOLE),
    (cut(PACKED, "x-goog-generation: 1", GZIP), PLAIN_REST, reply(200, PACKED, "x-goog-generation: 1", GZIP)),
    (chunked(200, PACKED[:20], ETAG, GZIP, end="close"), PLAIN_REST, PACKED_WHOLE),
    (chunked(200, PACKED[:20], GZIP, end="close"), PLAIN_REST, chunked(200, PACKED, GZIP)),
    (cut(DATA, ETAG), reply(206, PACKED[20:], ETAG, GZIP, span(20, PACKED)), reply(200, DATA, ETAG)),
    (cut(DATA, ETAG), reply(206, DATA[20:], ETAG, GZIP, span(20)), reply(200, DATA, ETAG)),
    (cut(DATA, ETAG), PACKED_WHOLE, reply(200, DATA, ETAG)),
    (cut(DATA, ETAG, IDENTITY), PLAIN_REST, reply(404)),
    (cut(DATA, ETAG), reply(206, DATA[20:], ETAG, span(20), IDENTITY), reply(404)),
]


@EVERY
@pytest.mark.parametrize(("first", "ranged", "whole"), CODINGS)
def test_two_content_codings_are_never_joined(flavour: Flavour, first: Answer, ranged: Answer, whole: Answer) -> None:
    """A server that packs while it sends and has ranges of the file itself, under one ETag; `identity` is no coding."""
    with Files(ranged, first, whole) as wire:
        result = fetch(flavour, wire.url, headers={"Accept-Encoding": "gzip"})
    assert (result.status, result.content) == (200, DATA)


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize("at", [20, 4])
def test_what_is_packed_otherwise_each_time_is_not_joined(flavour: Flavour, at: int) -> None:
    """The same ETag is no proof where the bytes differ: the break is raised, unless nothing that differs was seen."""
    ranged = reply(206, DATA[at:], ETAG, span(at))
    with Files(ranged, cut(PACKED, ETAG, GZIP, at=at), reply(200, ANEW, ETAG, GZIP)) as wire:
        result = fetch(flavour, wire.url, headers={"Accept-Encoding": "gzip"}, stop_after=STREAM)
    if at == 4 or flavour.name == "aiohttp":  # the time is in bytes 4 to 7; aiohttp compares what it has unpacked
        assert (result.status, result.content in (DATA, ANEW)) == (200, True)
    else:
        assert result.error is not None
        assert result.report.text == "the rest cannot be requested: the second response begins with other bytes"


PART = DATA[1000:]
PARTS = [
    # Nothing proves what a 200 of unknown length begins with, so it is asked for again.
    ((chunked(200, PART[:100], ETAG, span(1000), end="close"), reply(206, PART, ETAG, span(1000))), [1000, 1000]),
    ((chunked(200, PART[:100], ETAG, span(1000), end="close"), reply(200, PART, ETAG, span(1000))), [1000, 1000]),
    ((chunked(206, PART[:100], ETAG, span(1000), end="close"), reply(206, PART[100:], ETAG, span(1100))), [1000, 1100]),
    ((cut(PART, ETAG, span(1000), at=100), reply(206, PART[100:], ETAG, span(1100))), [1000, 1100]),
    ((cut(PART, ETAG, span(1000), at=100), reply(200, PART[100:], ETAG, span(1100))), [1000, 1100]),
    (
        (
            cut(PART, ETAG, span(1000), at=100, status=206),
            chunked(200, PART[100:], ETAG, span(1100)),
            reply(206, PART, ETAG, span(1000)),
        ),
        [1000, 1100, 1000],
    ),
    (
        (
            cut(PART, ETAG, span(1000), at=100, status=206),
            reply(200, DATA, ETAG, span(1100)),
            reply(206, PART, ETAG, span(1000)),
        ),
        [1000, 1100, 1000],
    ),
    (
        (
            cut(PART, ETAG, span(1000), at=100, status=206),
            reply(200, DATA, ETAG),
            reply(206, PART, ETAG, span(1000)),
        ),
        [1000, 1100, 1000],
    ),
]  # fmt: skip


@EVERY
@pytest.mark.parametrize(("answers", "firsts"), PARTS)
def test_a_200_with_a_content_range(flavour: Flavour, answers: tuple[Answer, ...], firsts: list[int]) -> None:
    """It is the part that was asked for only if its range and its length say so; otherwise the part starts over."""
    with Wire(*answers) as wire:
        result = fetch(flavour, wire.url, headers=RANGE)
        assert (result.error, result.content) == (None, PART)
        assert [int((seen.header("range") or "")[6:].partition("-")[0]) for seen in wire.seen] == firsts


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_200_that_lies_about_its_range_is_not_joined(flavour: Flavour) -> None:
    """A server that names the range and sends the object from its beginning: no byte of it is taken for the part."""
    first = chunked(200, DATA[:100], ETAG, span(1000), end="close")
    with Wire(first, reply(206, PART, ETAG, span(1000))) as wire:
        result = fetch(flavour, wire.url, headers=RANGE, stop_after=STREAM)
    assert result.error is not None
    assert result.report.reason is Reason.BODY


@EVERY
@pytest.mark.parametrize("headers", [(), (ETAG,), ('ETag: W/"one"',)], ids=["none", "strong", "weak"])
@pytest.mark.parametrize("at", [0, 20])
@pytest.mark.parametrize("first_is_chunked", [True, False])
def test_a_length_that_is_missing_does_not_differ(
    flavour: Flavour, headers: tuple[str, ...], at: int, first_is_chunked: bool
) -> None:
    """A response of unknown length goes on in one that says its length, and the other way round."""
    first = chunked(200, DATA[:at], *headers, end="close") if first_is_chunked and at else cut(DATA, *headers, at=at)
    second = reply(200, DATA, *headers) if first_is_chunked else chunked(200, DATA, *headers)
    with Wire(first, second) as wire:
        assert fetch(flavour, wire.url).content == DATA
        assert len(wire.seen) == 2


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize("known", [True, False])
def test_a_second_response_that_ends_too_early_is_no_success(flavour: Flavour, known: bool) -> None:
    """Chunks that end well before the length that the first response promised are a break, not the end."""
    first = cut(DATA) if known else chunked(200, DATA[:20], end="close")
    for end, whole in ((100, not known), (10, False)):
        with Wire(first, chunked(200, DATA[:end])) as wire:
            result = fetch(flavour, wire.url, rfc9110.policy.with_attempts(2), stop_after=STREAM)
        assert (result.error is None) == whole, end


@EVERY
@pytest.mark.parametrize("at", [0, len(DATA)])
@pytest.mark.parametrize("name", [(ETAG,), ()], ids=["named", "unnamed"])
def test_a_body_that_lacks_only_its_last_chunk_is_whole(flavour: Flavour, at: int, name: tuple[str, ...]) -> None:
    """The answer to a range after the end says how long the object is, and If-Range that it is the same one."""
    first = (
        chunked(200, DATA, ETAG, end="close") if at else Answer(head(200, "Transfer-Encoding: chunked", ETAG), "close")
    )
    end = f"Content-Range: bytes */{at}"
    with Wire(first, reply(416, b"out of range", end, *name)) as wire:
        result = fetch(flavour, wire.url)
        assert (result.status, result.content) == (200, DATA[:at])
        assert len(wire.seen) == 2
    assert result.open_connections == 0


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize(
    ("first", "again", "whole"),
    [
        ((ETAG,), ("Content-Range: bytes */7", ETAG), True),
        ((ETAG,), (), True),
        ((ETAG,), (f"Content-Range: bytes */{len(DATA)}", 'ETag: "two"'), False),
        ((ETAG, GZIP), (f"Content-Range: bytes */{len(PACKED)}",), True),
        ((ETAG, GZIP), (f"Content-Range: bytes */{len(PACKED)}", ETAG), True),
    ],
)
def test_a_416_that_proves_nothing_is_no_end(
    flavour: Flavour, first: tuple[str, ...], again: tuple[str, ...], whole: bool
) -> None:
    """One of another length does not end a body: the whole is asked for again; one of another object is final."""
    body = PACKED if GZIP in first else DATA
    with Files(reply(416, b"", *again), chunked(200, body, *first, end="close"), reply(200, body, *first)) as wire:
        result = fetch(flavour, wire.url, headers={"Accept-Encoding": "gzip"}, stop_after=STREAM)
        assert len([seen for seen in wire.seen if seen.header("range") is None]) == 1 + whole
    if whole:
        assert (result.error, result.content in (DATA, body)) == (None, True)
    else:
        assert result.report.text == "the rest cannot be requested: the object has another ETag now"


@EVERY
def test_a_generation_is_pinned_by_its_query_for_a_416_too(flavour: Flavour) -> None:
    """A 416 to a request that names the generation is of that generation."""
    first = chunked(200, DATA, "x-goog-generation: 7", end="close")
    with Wire(first, reply(416, b"", f"Content-Range: bytes */{len(DATA)}")) as wire:
        result = fetch(flavour, wire.url + "/storage/v1/b/bkt/o/thing?alt=media", cloud_storage.policy)
        assert "generation=7" in wire.seen[1].target
    assert (result.error, result.content) == (None, DATA)


@EVERY
@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("stream", [None, 10**6])
@pytest.mark.parametrize("headers", [(), (GZIP,)])
def test_a_head_is_handed_out_as_by_the_plain_client(
    flavour: Flavour, status: int, stream: int | None, headers: tuple[str, ...]
) -> None:
    """A length promises no body where there is none to come, whether forbear gave up or not."""
    with Wire(Answer(head(status, "Content-Length: 100", *headers))) as wire:
        result = flavour.call(flavour.transport(rfc9110.policy), "HEAD", wire.url, stop_after=stream)
    assert (result.status, result.content) == (status, b"")
    assert result.response.headers["content-length"] == "100"
    if status == 503:
        assert result.report.reason is Reason.ATTEMPTS


@EVERY
@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("stream", [None, 10**6])
def test_other_responses_without_a_body(flavour: Flavour, status: int, method: str, stream: int | None) -> None:
    """A 204 and a 304 end with their headers, also where a policy for values gave up on them."""
    policy = rfc9110.policy.with_attempts(2).with_on_result(lambda response: True)
    for chosen in (rfc9110.policy, policy):
        with Wire(Answer(head(status, "Content-Length: 100", GZIP))) as wire:
            result = flavour.call(flavour.transport(chosen), method, wire.url, stop_after=stream)
        assert (result.status, result.content) == (status, b"")


@pytest.mark.parametrize("flavour", OTHERS, ids=lambda flavour: flavour.name, indirect=True)
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("stream", [None, 10**6])
def test_a_switch_of_protocols_has_no_body(flavour: Flavour, method: str, stream: int | None) -> None:
    """A 101 is handed out by these clients, and what follows is no body of it."""
    upgrade = head(101, "Content-Length: 100", "Connection: upgrade", "Upgrade: other")
    with Wire(Answer(upgrade, "close")) as wire:
        result = flavour.call(flavour.transport(rfc9110.policy), method, wire.url, stop_after=stream)
        assert (result.status, result.content, len(wire.seen)) == (101, b"", 1)


LONG = bytes(range(256)) * 5000
"""More than is kept as it is."""

PROOFS = pytest.mark.parametrize("name", [(), (ETAG,)], ids=["by hash", "by ETag"])


@EVERY
@LEFT_BEFORE_ITS_END
@PROOFS
@pytest.mark.parametrize("same", [True, False])
def test_a_long_body_starts_over(flavour: Flavour, name: tuple[str, ...], same: bool) -> None:
    """Bytes that were handed out are skipped, however many, and only if the response has the same validator."""
    headers = (*name, "Accept-Ranges: none")
    others = LONG[:700_000] + b"?" + LONG[700_001:]
    again = LONG if same else others
    if name and not same:
        headers = ('ETag: "two"', "Accept-Ranges: none")
    with Wire(
        cut(LONG, *name, "Accept-Ranges: none", at=1_200_000),
        Answer(reply(200, again, *headers).data[:900_000], "reset"),
        reply(503),
        cut(again, *headers, at=1_250_000),
        reply(200, again, *headers),
    ) as wire:
        result = fetch(flavour, wire.url, stop_after=STREAM)
    if same:
        assert (result.error, result.content == LONG) == (None, True)
    else:
        assert result.report.reason is Reason.BODY
        assert result.report.text.partition(": ")[2] == (
            "the second response has another etag than the first"
            if name
            else "the second response begins with other bytes"
        )


@EVERY
@LEFT_BEFORE_ITS_END
@PROOFS
def test_starting_over_is_no_progress(flavour: Flavour, name: tuple[str, ...]) -> None:
    """A server that breaks each response a little later cannot make the client start over without end."""
    answers = [cut(DATA, *name, at=number) for number in range(10, 200)]
    with Wire(*answers) as wire:
        result = fetch(flavour, wire.url, rfc9110.policy.with_attempts(5))
        assert len(wire.seen) == 5
    assert result.report.reason is Reason.ATTEMPTS


@EVERY
@LEFT_BEFORE_ITS_END
def test_skipping_has_the_policys_time(flavour: Flavour) -> None:
    """Bytes that come again, but slowly, are not skipped longer than the policy's timeout."""
    clocks: list[VirtualTime] = []
    slow = reply(200, LONG)
    late = Answer(slow.data, first=lambda: clocks[0].advance(100))
    with Wire(cut(LONG, at=1_200_000), late) as wire:
        policy = rfc9110.policy.with_timeout(60)
        result = fetch(flavour, wire.url, policy, clock=clocks.append, stop_after=STREAM)
        assert len(wire.seen) == 2
    assert result.report.reason is Reason.TIMEOUT
    assert result.report.attempts[-1].text == "the bytes received before did not arrive again in time"


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_get_whose_own_body_is_spent_is_not_sent_again(flavour: Flavour) -> None:
    """A search whose query is a stream of more than the buffer goes out once; the break says why it was the last."""
    with Wire(cut(DATA, ETAG)) as wire:
        transport = flavour.transport(rfc9110.policy, buffer=2)
        result = flavour.call(transport, "GET", wire.url, content=flavour.once([b"query"]))
        assert len(wire.seen) == 1
    assert result.report.text.startswith("the rest cannot be requested: the body is a one-shot stream")


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_stream_of_events_starts_over_only_before_its_first(flavour: Flavour) -> None:
    """Events that were handed out do not come again; where there was none, nothing is lost."""
    for at, requests in ((0, 2), (20, 1)):
        with Wire(
            cut(DATA, "Content-Type: text/event-stream", at=at), reply(200, DATA, "Content-Type: text/event-stream")
        ) as wire:
            result = fetch(flavour, wire.url, stop_after=STREAM)
            assert (result.error is None, len(wire.seen)) == (requests == 2, requests)
