"""Bodies of responses: which are read at once, continued, watched or shown, with cases around every bound."""

import pytest

from forbear.exchange.http.responses import SHOWN, is_continued, is_read_at_once, is_shown, needs_reader

KIB = 1024


@pytest.mark.parametrize(
    ("method", "status", "headers", "expected"),
    [
        ("POST", 200, {"content-length": "0"}, True),
        ("POST", 200, {"content-length": str(64 * KIB)}, True),
        ("POST", 200, {"content-length": str(64 * KIB + 1)}, False),
        ("POST", 399, {"content-length": "1"}, True),
        ("POST", 400, {"content-length": "1"}, False),
        ("POST", 503, {"content-length": "1"}, False),
        ("POST", 200, {}, False),
        ("POST", 200, {"content-length": "many"}, False),
        ("POST", 200, {"content-length": "1", "transfer-encoding": "chunked"}, False),
        ("POST", 204, {"content-length": "1"}, False),
        ("POST", 304, {"content-length": "1"}, False),
        ("GET", 200, {"content-length": "1"}, False),
        ("HEAD", 200, {"content-length": "1"}, False),
        ("OPTIONS", 200, {"content-length": "1"}, True),
    ],
)
def test_short_bodies_are_read_at_once(method: str, status: int, headers: dict[str, str], expected: bool) -> None:
    """Up to 64 KiB, by the length that the response says, and no body of an error or of a GET."""
    assert is_read_at_once(method, status, headers) is expected


@pytest.mark.parametrize(
    ("method", "status", "expected"),
    [
        ("GET", 199, False),
        ("GET", 200, True),
        ("GET", 201, False),
        ("GET", 205, False),
        ("GET", 206, True),
        ("GET", 304, False),
        ("GET", 416, False),
        ("HEAD", 200, False),
        ("POST", 206, False),
    ],
)
def test_bodies_of_a_get_are_continued(method: str, status: int, expected: bool) -> None:
    """Only those of 200 and 206: another status has no bytes of the content."""
    assert is_continued(method, status) is expected


@pytest.mark.parametrize(
    ("method", "status", "headers", "given_up", "expected"),
    [
        ("GET", 200, {}, False, True),
        ("GET", 404, {}, False, False),
        ("GET", 404, {}, True, True),
        ("GET", 304, {}, True, False),
        ("HEAD", 200, {}, True, False),
        ("POST", 200, {"content-length": "5"}, False, False),
        ("POST", 200, {"content-length": "5"}, True, True),
        ("POST", 200, {"transfer-encoding": "chunked"}, False, True),
        ("POST", 500, {"content-length": "5"}, False, True),
        ("POST", 204, {}, True, False),
        ("OPTIONS", 200, {}, False, False),
    ],
)
def test_bodies_whose_break_must_be_noticed(
    method: str, status: int, headers: dict[str, str], given_up: bool, expected: bool
) -> None:
    """A body that can be continued, one of a request that was given up, and a write's that is not read at once."""
    assert needs_reader(method, status, headers, given_up=given_up) is expected


@pytest.mark.parametrize(
    ("method", "status", "headers", "expected"),
    [
        ("GET", 200, {"content-length": str(SHOWN)}, True),
        ("GET", 200, {"content-length": str(SHOWN + 1)}, False),
        ("GET", 200, {}, True),
        ("GET", 200, {"content-type": " Text/Event-Stream; charset=utf-8"}, False),
        ("GET", 200, {"content-type": "multipart/x-mixed-replace; boundary=b"}, False),
        ("GET", 204, {}, False),
        ("HEAD", 200, {}, False),
    ],
)
def test_bodies_that_are_judged_are_read(method: str, status: int, headers: dict[str, str], expected: bool) -> None:
    """Up to SHOWN bytes, and no stream that goes on as long as the server likes."""
    assert is_shown(method, status, headers) is expected
