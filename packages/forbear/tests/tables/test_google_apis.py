"""Parts of responses that verdicts need: the status and reasons of an error of a Google API."""

import pytest

from forbear.tables import google_apis


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
def test_the_status_and_reasons_of_an_error(body: bytes, status: str | None, reasons: set[str]) -> None:
    """A body that is no error of a Google API has neither."""
    assert google_apis.error_status(body) == status
    assert google_apis.error_reasons(body) == reasons
