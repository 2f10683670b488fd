"""Continuing a download: which bytes are requested, and which responses are believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.http import ranges
from forbear.http.ranges import ContentRange, Unresumable
from forbear.http.ranges import DownloadRange as Range

ETAG = '"abc"'
NO_RANGE = "the response does not say which one range of bytes it has"
NO_PIN = "neither a strong ETag nor a generation says which object it is"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("bytes 0-9/10", ContentRange(0, 9, 10)),
        ("bytes 9-9/10", ContentRange(9, 9, 10)),
        ("bytes 5-9/*", ContentRange(5, 9, None)),
        ("Bytes 0-0/1", ContentRange(0, 0, 1)),
        (" bytes  0-9/10 ", ContentRange(0, 9, 10)),
        ("bytes */10", ContentRange(None, None, 10)),
        ("bytes */0", ContentRange(None, None, 0)),
        ("bytes */*", None),
        ("bytes 0-10/10", None),
        ("bytes 9-8/10", None),
        ("bytes 0-9", None),
        ("bytes 0-9/", None),
        ("bytes 0-9/x", None),
        ("bytes -9/10", None),
        ("bytes 0-/10", None),
        ("bytes 0/10", None),
        ("bytes 0-5-9/10", None),
        ("bytes a-b/10", None),
        ("bytes 0-٣/10", None),
        ("bytes 0-9/-10", None),
        ("bytes=0-9/10", None),
        ("items 0-9/10", None),
        ("0-9/10", None),
        ("", None),
        ("bytes 0-9999999999999999998/9999999999999999999", ContentRange(0, 9999999999999999998, 9999999999999999999)),
        ("bytes 0-9/10000000000000000000", None),
    ],
)
def test_content_range(value: str, expected: ContentRange | None) -> None:
    """One range of bytes that makes sense, or none."""
    assert ranges.parse(value) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content-range": "bytes 5-9/10", "content-length": "5"}, ContentRange(5, 9, 10)),
        ({"content-length": "7"}, ContentRange(0, 6, 7)),
        ({"content-length": "0"}, ContentRange(0, -1, 0)),
        ({}, ContentRange(0, None, None)),
        ({"content-range": "bytes */10"}, None),
        ({"content-range": "items 0-9/10"}, None),
    ],
)
def test_what_an_upload_carries(headers: dict[str, str], expected: ContentRange | None) -> None:
    """Content-Range says which bytes, and without one they are all of the object."""
    assert ranges.read_sent_range(headers) == expected


@given(st.text(max_size=30))
def test_no_content_range_raises(value: str) -> None:
    """Whatever is read lies within the object."""
    for found in (ranges.parse(value), ranges.parse(f"bytes {value}")):
        if found is not None and found.first is not None:
            assert found.last is not None
            assert 0 <= found.first <= found.last


@pytest.mark.parametrize(
    ("headers", "part"),
    [
        ({"content-length": "10", "etag": ETAG}, Range(0, 9, 10, etag=ETAG)),
        ({"content-length": "0", "etag": ETAG}, Range(0, -1, 0, etag=ETAG)),
        ({"etag": ETAG}, Range(0, None, None, etag=ETAG)),
        (
            {"content-length": "10", "transfer-encoding": "chunked", "etag": ETAG},
            Range(0, None, None, etag=ETAG),
        ),
        ({"content-length": "ten", "etag": ETAG}, Range(0, None, None, etag=ETAG)),
        ({"x-goog-generation": "17"}, Range(0, None, None, generation="17")),
        ({"x-goog-generation": "17", "etag": 'W/"abc"'}, Range(0, None, None, generation="17")),
        ({"x-goog-generation": "", "etag": ETAG}, Range(0, None, None, etag=ETAG)),
        ({"x-goog-generation": "17", "etag": ETAG, "accept-ranges": "bytes"}, Range(0, None, None, ETAG, "17")),
        ({"etag": ETAG, "content-encoding": "gzip"}, Range(0, None, None, ETAG, encoding="gzip")),
        (
            {"etag": ETAG, "content-encoding": "gzip", "x-goog-stored-content-encoding": "gzip"},
            Range(0, None, None, ETAG, encoding="gzip"),
        ),
        ({"etag": ETAG, "x-goog-stored-content-encoding": "identity"}, Range(0, None, None, ETAG)),
        ({"etag": ETAG, "content-encoding": "identity"}, Range(0, None, None, ETAG)),
        ({"etag": ETAG, "content-length": "10", "content-range": "bytes 0-9/10"}, Range(0, 9, 10, ETAG)),
    ],
)
def test_a_whole_object_can_be_continued(headers: dict[str, str], part: Range) -> None:
    """A 200 promises all bytes of an object that its ETag or generation names."""
    assert ranges.download_range(200, headers) == part


@pytest.mark.parametrize(
    ("content_range", "part"),
    [
        ("bytes 0-9/10", Range(0, 9, 10, etag=ETAG)),
        ("bytes 5-7/10", Range(5, 7, 10, etag=ETAG)),
        ("bytes 5-7/*", Range(5, 7, None, etag=ETAG)),
    ],
)
def test_a_part_can_be_continued(content_range: str, part: Range) -> None:
    """A 206 promises the bytes in its Content-Range, whichever way the request asked for them."""
    headers = {"content-range": content_range, "content-length": "99", "etag": ETAG}
    assert ranges.download_range(206, headers) == part


@pytest.mark.parametrize(
    ("asked", "content_range", "length", "part"),
    [
        ("bytes=4-", "bytes 4-9/10", "6", Range(4, 9, 10, ETAG)),
        ("bytes=4-7", "bytes 4-7/10", "4", Range(4, 7, 10, ETAG)),
        ("Bytes = 4 - 7", "bytes 4-7/10", "4", Range(4, 7, 10, ETAG)),
        ("bytes=4-99", "bytes 4-9/10", "6", Range(4, 9, 10, ETAG)),
        ("bytes=-6", "bytes 4-9/10", "6", Range(4, 9, 10, ETAG)),
        ("bytes=-99", "bytes 0-9/10", "10", Range(0, 9, 10, ETAG)),
        ("", "bytes 0-9/10", "10", Range(0, 9, 10, ETAG)),
        ("bytes=4-", "bytes 4-9/10", "10", None),
        ("bytes=4-", "bytes 4-9/10", None, None),
        ("bytes=4-", "bytes 4-9/*", "6", None),
        ("bytes=4-", "bytes */10", "6", None),
        ("bytes=4-", "bytes 5-9/10", "5", None),
        ("bytes=4-7", "bytes 4-9/10", "6", None),
        ("bytes=4-5,7-9", "bytes 4-9/10", "6", None),
        ("bytes=x-9", "bytes 4-9/10", "6", None),
        ("bytes=-", "bytes 4-9/10", "6", None),
        ("bytes=4", "bytes 4-9/10", "6", None),
        ("items=4-9", "bytes 4-9/10", "6", None),
        ("", "bytes 4-9/10", "6", None),
    ],
)
def test_a_200_counts_as_a_part_only_where_it_says_exactly_what_was_asked_for(
    asked: str, content_range: str, length: str | None, part: Range | None
) -> None:
    """RFC 9110 gives a Content-Range no meaning in a 200, so it must be the one asked for and the length must agree."""
    headers = {"content-range": content_range, "etag": ETAG} | ({} if length is None else {"content-length": length})
    if part is not None:
        assert ranges.download_range(200, headers, asked) == part
    else:
        with pytest.raises(Unresumable, match=r"200 with a Content-Range|which one range"):
            ranges.download_range(200, headers, asked)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""), ("identity", ""), ("gzip", "gzip"), ("GZIP", "gzip"), ("x-gzip", "gzip"), ("x-compress", "compress"),
        ("gzip, br", "gzip, br"), ("br,identity,gzip", "br, gzip"), ("x-other", "x-other"), (" , ", ""),
    ],
)  # fmt: skip
def test_content_codings(value: str, expected: str) -> None:
    """Codings are compared by their names, and identity is none."""
    assert ranges.coding({"content-encoding": value}) == expected
    assert ranges.coding({}) == ""


@pytest.mark.parametrize(
    ("status", "headers", "pinned"),
    [
        (200, {"etag": ETAG}, True),
        (200, {"x-goog-generation": "1"}, True),
        (200, {"etag": ETAG, "content-encoding": "identity"}, True),
        (206, {"etag": ETAG, "content-range": "bytes 0-1/2"}, True),
        (200, {}, False),
        (200, {"etag": 'W/"abc"'}, False),
        (200, {"etag": ETAG, "content-encoding": "gzip"}, False),
        (200, {"etag": ETAG, "content-range": "bytes 0-1/2"}, False),
        (206, {"etag": ETAG}, False),
        (206, {"etag": ETAG, "content-range": "bytes */2"}, False),
    ],
)
def test_which_responses_need_no_proof_but_their_validator(status: int, headers: dict[str, str], pinned: bool) -> None:
    """A coded response may be packed otherwise the next time, and one of no clear extent may have other bytes."""
    assert ranges.is_pinned(status, headers) is pinned


@pytest.mark.parametrize(
    ("status", "headers", "why"),
    [
        (404, {"etag": ETAG}, "404 Not Found is no download"),
        (204, {"etag": ETAG}, "204 No Content is no download"),
        (206, {"etag": ETAG}, NO_RANGE),
        (
            206, {"etag": ETAG, "content-type": "multipart/byteranges; boundary=x"},
            NO_RANGE,
        ),
        (206, {"etag": ETAG, "content-range": "bytes */10"}, NO_RANGE),
        (200, {}, NO_PIN),
        (200, {"etag": 'W/"abc"'}, NO_PIN),
        (200, {"etag": "abc"}, NO_PIN),
        (200, {"x-goog-generation": ""}, NO_PIN),
        (200, {"etag": ETAG, "accept-ranges": "none"}, "the server does not serve ranges"),
        (
            200, {"etag": ETAG, "x-goog-stored-content-encoding": "gzip"},
            (
                "the server decodes gzip while it sends, and then ignores ranges; "
                "ask for the stored bytes with `Accept-Encoding: gzip`"
            ),
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_continued(status: int, headers: dict[str, str], why: str) -> None:
    """Each reason is said."""
    with pytest.raises(Unresumable) as caught:
        ranges.download_range(status, headers)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("part", "received", "headers", "remaining"),
    [
        (Range(0, 9, 10, ETAG), 0, {"range": "bytes=0-9", "if-range": ETAG}, 10),
        (Range(0, 9, 10, ETAG), 4, {"range": "bytes=4-9", "if-range": ETAG}, 6),
        (Range(0, 9, 10, ETAG), 10, {"range": "bytes=10-9", "if-range": ETAG}, 0),
        (Range(5, 7, 10, ETAG), 2, {"range": "bytes=7-7", "if-range": ETAG}, 1),
        (Range(0, None, None, ETAG), 4, {"range": "bytes=4-", "if-range": ETAG}, None),
        (Range(0, -1, 0, ETAG), 0, {"range": "bytes=0--1", "if-range": ETAG}, 0),
        (Range(0, 9, 10, None, "17"), 4, {"range": "bytes=4-9"}, 6),
        (Range(0, 9, 10, ETAG, encoding="gzip"), 4, {"range": "bytes=4-9"}, 6),
    ],
)
def test_the_rest_is_asked_for(part: Range, received: int, headers: dict[str, str], remaining: int | None) -> None:
    """The range begins after what was received; where nothing remains there is nothing to ask for."""
    assert part.remaining(received) == remaining
    assert part.headers(received) == headers


def _reply(content_range: str = "bytes 4-9/10", **headers: str) -> dict[str, str]:
    return {"content-range": content_range} | {name.replace("_", "-"): value for name, value in headers.items()}


WHOLE = Range(0, 9, 10, ETAG)
UNKNOWN_LENGTH = Range(0, None, None, ETAG)


@pytest.mark.parametrize(
    ("part", "headers"),
    [
        (WHOLE, _reply(etag=ETAG)),
        (WHOLE, _reply("bytes 4-9/*", etag=ETAG)),
        (WHOLE, _reply(etag=ETAG, x_goog_generation="99")),
        (Range(0, 9, None, ETAG), _reply(etag=ETAG)),
        (Range(0, 9, None, ETAG), _reply("bytes 4-9/11", etag=ETAG)),
        (UNKNOWN_LENGTH, _reply(etag=ETAG)),
        (Range(0, 9, 10, None, "17"), _reply(x_goog_generation="17")),
        (Range(0, 9, 10, ETAG, "17"), _reply(x_goog_generation="17")),
        (Range(0, 9, 10, ETAG, "17"), _reply(etag=ETAG)),
        (Range(0, 9, 10, ETAG, "17"), _reply(etag=ETAG, x_goog_generation="17")),
        (Range(0, 9, 10, None, "17"), _reply(etag='"other"', x_goog_generation="17")),
        (Range(0, 9, 10, ETAG, None, "gzip"), _reply(etag=ETAG, content_encoding="gzip")),
        (WHOLE, _reply(etag=ETAG, content_encoding="identity")),
        (Range(0, 9, 10, None, "17", "gzip"), _reply(x_goog_generation="17", content_encoding="gzip")),
        (Range(0, 9, 10, None, "17"), _reply(x_goog_generation="17", content_encoding="")),
    ],
)
def test_a_response_that_goes_on(part: Range, headers: dict[str, str]) -> None:
    """Exactly the missing bytes of the same object are accepted, also where a 200 says of itself that it has them."""
    assert ranges.verify(part, 4, 206, headers) == 10
    assert ranges.verify(part, 4, 200, headers | {"content-length": "6"}) == 10


@pytest.mark.parametrize("part", [UNKNOWN_LENGTH, Range(0, None, None, None, "17")])
@pytest.mark.parametrize(
    ("content_range", "headers", "named", "whole"),
    [
        ("bytes */4", {}, True, True),
        ("bytes */4", {"etag": ETAG, "x-goog-generation": "17"}, False, True),
        ("bytes */4", {}, False, False),
        ("bytes */5", {}, True, False),
        ("bytes 0-3/4", {}, True, False),
        ("", {}, True, False),
    ],
)
def test_a_416_may_say_that_nothing_is_missing(
    part: Range, content_range: str, headers: dict[str, str], named: bool, whole: bool
) -> None:
    """A body of unknown length that lacks only its end is whole, by the word of a server that speaks of the object."""
    headers = {"content-range": content_range, **headers}
    if whole:
        assert ranges.verify(part, 4, 416, headers, named=named) == 4
    else:
        with pytest.raises(Unresumable) as caught:
            ranges.verify(part, 4, 416, headers, named=named)
        assert not caught.value.final


def test_a_416_says_nothing_of_a_coded_body() -> None:
    """Its size may be that of the object itself, which is as long as a piece of the packed one."""
    headers = {"content-range": "bytes */4", "etag": ETAG}
    with pytest.raises(Unresumable, match="416"):
        ranges.verify(Range(0, None, None, ETAG, encoding="gzip"), 4, 416, headers, named=True)


def test_a_416_of_another_object_says_nothing() -> None:
    """A body is not whole by the length of its successor."""
    for name, value in (("etag", '"new"'), ("x-goog-generation", "18")):
        with pytest.raises(Unresumable, match="another") as caught:
            ranges.verify(
                Range(0, None, None, ETAG, "17"),
                4,
                416,
                {"content-range": "bytes */4", name: value},
                named=True,
            )
        assert caught.value.final


@pytest.mark.parametrize(
    ("part", "status", "headers", "why"),
    [
        (WHOLE, 200, _reply(etag=ETAG), "the server sent the whole object instead of the rest: it changed, or "),
        (WHOLE, 200, _reply(etag=ETAG, content_length="10"), "the server sent the whole object instead of the rest"),
        (WHOLE, 200, _reply(etag=ETAG, content_length="6", transfer_encoding="chunked"), "the server sent the whole"),
        (WHOLE, 200, _reply("bytes 3-9/10", etag=ETAG, content_length="7"), "the rest does not begin at byte 4"),
        (WHOLE, 200, {"etag": ETAG}, "the server sent the whole object instead of the rest"),
        (WHOLE, 416, _reply("bytes */10"), "the server answered 416 "),
        (WHOLE, 412, {}, "the server answered 412 Precondition Failed instead of sending the rest"),
        (WHOLE, 206, {"etag": ETAG}, "the rest does not begin at byte 4"),
        (WHOLE, 206, _reply("bytes */10", etag=ETAG), "the rest does not begin at byte 4"),
        (WHOLE, 206, _reply("bytes 0-9/10", etag=ETAG), "the rest does not begin at byte 4"),
        (WHOLE, 206, _reply("bytes 3-9/10", etag=ETAG), "the rest does not begin at byte 4"),
        (WHOLE, 206, _reply("bytes 5-9/10", etag=ETAG), "the rest does not begin at byte 4"),
        (WHOLE, 206, _reply("bytes 4-9/11", etag=ETAG), "the object has 11 bytes now and had 10"),
        (WHOLE, 206, _reply("bytes 4-8/10", etag=ETAG), "the response does not have all of the rest"),
        (Range(0, 7, 10, ETAG), 206, _reply("bytes 4-9/10", etag=ETAG), "the response does not have all of the rest"),
        (UNKNOWN_LENGTH, 206, _reply("bytes 4-8/10", etag=ETAG), "the response does not have all of the rest"),
        (UNKNOWN_LENGTH, 206, _reply("bytes 4-9/*", etag=ETAG), "the response does not have all of the rest"),
        (WHOLE, 206, _reply(etag='"new"'), "the object has another ETag now"),
        (WHOLE, 206, _reply(etag='W/"abc"'), "the object has another ETag now"),
        (Range(0, 9, 10, ETAG, "17"), 206, _reply(etag='"new"', x_goog_generation="17"), "the object has another ETag"),
        (Range(0, 9, 10, ETAG, "17"), 206, _reply(etag=ETAG, x_goog_generation="18"), "the object has another gen"),
        (Range(0, 9, 10, None, "17"), 206, _reply(x_goog_generation="18"), "the object has another generation now"),
        (WHOLE, 206, _reply(), "the response does not name its object"),
        (WHOLE, 206, _reply(x_goog_generation="17"), "the response does not name its object"),
        (Range(0, 9, 10, None, "17"), 206, _reply(), "the response does not name its object"),
        (Range(0, 9, 10, None, "17"), 206, _reply(etag=ETAG), "the response does not name its object"),
        (WHOLE, 206, _reply(etag=ETAG, content_encoding="gzip"), "the object comes in another encoding now"),
        (
            Range(0, 9, 10, ETAG, None, "gzip"), 206, _reply(etag=ETAG, content_encoding="br"),
            "the object comes in another encoding now",
        ),
        (
            Range(0, 9, 10, ETAG, None, "gzip"), 206, _reply(etag=ETAG),
            "the object comes in another encoding now",
        ),
        (
            Range(0, 9, 10, None, "17", "gzip"), 206, _reply(x_goog_generation="17"),
            "the object comes in another encoding now",
        ),
        (
            Range(0, 9, 10, ETAG, "17", "gzip"), 206, _reply(x_goog_generation="17"),
            "the object comes in another encoding now",
        ),
    ],
)  # fmt: skip
def test_a_response_that_does_not_go_on(part: Range, status: int, headers: dict[str, str], why: str) -> None:
    """Anything less is refused, with the reason."""
    with pytest.raises(Unresumable) as caught:
        ranges.verify(part, 4, status, headers)
    assert str(caught.value).startswith(why)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_parts_join_to_the_object(content: bytes, data: st.DataObject) -> None:
    """Wherever it breaks, asking for what is missing and joining what comes gives the object."""
    first = data.draw(st.integers(0, len(content) - 1))
    last = data.draw(st.integers(first, len(content) - 1))
    headers = {"content-range": f"bytes {first}-{last}/{len(content)}", "etag": ETAG}
    part = ranges.download_range(206, headers)
    got = b""
    while remaining := part.remaining(len(got)):
        start, end = part.headers(len(got))["range"].removeprefix("bytes=").split("-")
        reply = {"content-range": f"bytes {start}-{end}/{len(content)}", "etag": ETAG}
        ranges.verify(part, len(got), 206, reply)
        rest = content[int(start) : int(end) + 1]
        assert len(rest) == remaining
        got += rest[: data.draw(st.integers(1, len(rest)))]
    assert got == content[first : last + 1]


def test_what_nothing_is_said_of() -> None:
    """A part is of no known object and not encoded, unless told."""
    plain = Range(0, 9, 10)
    assert (plain.etag, plain.generation, plain.encoding) == (None, None, "")
