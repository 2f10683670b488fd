"""Verdicts on responses, with the wall clock where a response carries no date."""

import pytest

from forbear.tables import responses


@pytest.mark.parametrize(
    ("body", "status", "reasons"),
    [
        (b'{"error": {"status": "ABORTED"}}', "ABORTED", set()),
        (b'{"error": {"status": 10, "errors": [{"reason": "a"}, {"reason": "b"}]}}', None, {"a", "b"}),
        (b'{"error": {"errors": [{}, "x", null]}}', None, {"None"}),
        (b'{"error": {"errors": {"reason": "a"}}}', None, set()),
        (b'{"error": "ABORTED"}', None, set()),
        (b'{"status": "ABORTED"}', None, set()),
        (b"[]", None, set()),
        (b"ABORTED", None, set()),
        (b"", None, set()),
        (b"[" * 100_000, None, set()),
    ],
    ids=range(10),
)
def test_what_an_error_says(body: bytes, status: str | None, reasons: set[str]) -> None:
    """Its status and its reasons, if it is an error of a Google API."""
    assert responses.error_status(body) == status
    assert responses.error_reasons(body) == reasons
