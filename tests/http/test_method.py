"""Methods: what RFC 9110 says of them, and the headers that ask for another one."""

import pytest

from forbear.http import request


@pytest.mark.parametrize(
    ("name", "danger"),
    [
        ("GET", 0), ("HEAD", 0), ("OPTIONS", 0), ("TRACE", 0), ("PUT", 1), ("DELETE", 1), ("PATCH", 2),
        ("POST", 3), ("CONNECT", 3), ("PROPFIND", 3), ("get", 3), ("Put", 3), ("patch", 3), ("", 3), ("GET ", 3),
    ],
)  # fmt: skip
def test_danger(name: str, danger: int) -> None:
    """Reads are harmless, PUT and DELETE may be executed twice, a PATCH can be guarded, all else is unknown."""
    assert request.danger(name) == danger


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, []),
        ({"x-http-method": "patch"}, ["PATCH"]),
        ({"x-method-override": " delete "}, ["DELETE"]),
        ({"x-http-method-override": ""}, [""]),
        ({"x-method-override": "GET", "x-http-method-override": "PUT", "x-other": "POST"}, ["PUT", "GET"]),
    ],
)
def test_overrides(headers: dict[str, str], expected: list[str]) -> None:
    """Each of the three override headers counts, upper-cased and stripped, even an empty one."""
    assert request.method_overrides(headers) == expected


@pytest.mark.parametrize(
    ("name", "short"), [("GET", "GET"), ("PATCH", "PATCH"), ("get", "_OTHER"), ("PURGE", "_OTHER"), ("", "_OTHER")]
)
def test_labels(name: str, short: str) -> None:
    """Metrics have few labels, whatever methods there are."""
    assert request.method_label(name) == short
