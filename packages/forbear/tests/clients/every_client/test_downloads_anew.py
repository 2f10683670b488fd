"""Downloads of which the caller has no byte yet: they start over with any other response, within the policy."""

from typing import Any

import pytest

from forbear.events import Reason
from forbear.services import rfc9110
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
    span,
)
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.wire import Answer, Wire, reply

OTHER = b"something else, and shorter"
TWO = 'ETag: "two"'


@EVERY
@pytest.mark.parametrize(
    "second",
    [reply(200, OTHER), reply(200, OTHER, TWO), chunked(200, OTHER, TWO), chunked(200, OTHER)],
    ids=["length", "length and ETag", "ETag", "nothing"],
)
@pytest.mark.parametrize("first", [cut(DATA), cut(DATA, ETAG), chunked(200, DATA[:20], end="close")])
def test_a_body_that_is_read_as_a_whole_may_be_another_one(flavour: Flavour, first: Answer, second: Answer) -> None:
    """JSON whose content differs each time is had at the second attempt, with its own headers and none of the first."""
    with Wire(first, second) as wire:
        result = fetch(flavour, wire.url)
        assert (result.error, result.content, len(wire.seen)) == (None, OTHER, 2)
    assert result.response.headers.get("etag") == ('"two"' if b'"two"' in second.data else None)


@EVERY
@pytest.mark.parametrize("first", [cut(DATA, ETAG, at=0), cut(DATA, at=0)])
def test_a_stream_without_its_first_byte_may_be_another_one(flavour: Flavour, first: Answer) -> None:
    """So may a body that is handed out as it arrives, if it breaks before anything arrived."""
    with Wire(first, reply(200, OTHER, TWO)) as wire:
        result = fetch(flavour, wire.url, stop_after=STREAM)
    assert (result.error, result.content) == (None, OTHER)


@EVERY
def test_an_object_that_was_replaced_is_asked_for_again(flavour: Flavour) -> None:
    """A part of another object is not taken; the whole of that object is."""
    whole = reply(200, OTHER, TWO)
    with Wire(cut(DATA, ETAG), reply(206, DATA[20:], TWO, span(20)), whole) as wire:
        result = fetch(flavour, wire.url)
        assert (result.error, result.content, len(wire.seen)) == (None, OTHER, 3)


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize("stream", [None, STREAM])
def test_an_error_page_does_not_continue_a_body(flavour: Flavour, stream: int | None) -> None:
    """A caller who has a 200 gets no page of an error: the break is raised, and its report names the other status."""
    with Wire(cut(DATA, at=0), reply(404, b"gone")) as wire:
        result = fetch(flavour, wire.url, stop_after=stream)
        assert len(wire.seen) == 2
    assert result.report.reason is Reason.BODY
    assert result.report.text.endswith("the server answered 404 Not Found to the repeated request")


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_body_that_would_be_decoded_otherwise_is_not_taken(flavour: Flavour) -> None:
    """The reader has chosen how to decode when the first response came."""
    with Wire(cut(PACKED, GZIP, at=0), reply(200, DATA)) as wire:
        result = fetch(flavour, wire.url, headers={"Accept-Encoding": "gzip"})
    assert result.report.text.endswith("the second response has another content-encoding than the first")


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_part_in_a_stream_must_be_of_the_same_object(flavour: Flavour) -> None:
    """Whoever requests a range may have other ranges of the object already, and compares the headers that he has."""
    part: Any = (206, DATA[1000:])
    with Wire(cut(part[1], ETAG, span(1000), at=0, status=206), reply(*part, TWO, span(1000))) as wire:
        result = fetch(flavour, wire.url, headers=RANGE, stop_after=STREAM)
    assert result.report.reason is Reason.BODY


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize("name", [(), (ETAG,)], ids=["unnamed", "named"])
def test_starting_anew_is_bounded_by_the_policy(flavour: Flavour, name: tuple[str, ...]) -> None:
    """A server whose every response is another one, and breaks a little later, is not asked without end."""
    answers = [cut(DATA, *name, f'X-Number: "{at}"', "Accept-Ranges: none", at=at) for at in range(10, 60)]
    with Wire(*answers) as wire:
        result = fetch(flavour, wire.url, rfc9110.policy.with_attempts(5))
        assert len(wire.seen) == 5
    assert result.report.reason is Reason.ATTEMPTS
