"""Statuses: which of them are errors, which of those are transient, and what the server asks for."""

import pytest

from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http import status

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


@pytest.mark.parametrize("code", [100, 101, 200, 201, 204, 206, 301, 304, 308, 399])
def test_below_400_is_no_error(code: int) -> None:
    """Successes and redirects have no verdict."""
    assert status.verdict(code) is None


def test_exactly_six_statuses_are_transient() -> None:
    """Of all errors, only those that another try may cure are transient; overload is no breakage."""
    found = {code: status.verdict(code) for code in range(400, 1000)}
    transient = {408: TRANSIENT, 429: THROTTLED, 500: TRANSIENT, 502: TRANSIENT, 503: THROTTLED, 504: TRANSIENT}
    assert {code: verdict for code, verdict in found.items() if verdict != PERMANENT} == transient


def test_a_service_may_have_its_own_transient_statuses() -> None:
    """The set of transient statuses can be replaced; overload is overload only if it is in the set."""
    assert status.verdict(404, {404}) is TRANSIENT
    assert status.verdict(503, {404}) is PERMANENT


@pytest.mark.parametrize(
    ("code", "text"), [(503, "503 Service Unavailable"), (404, "404 Not Found"), (499, "499"), (799, "799")]
)
def test_statuses_have_names_for_people(code: int, text: str) -> None:
    """A known status is shown with its name, another one as a number."""
    assert status.reason(code) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Proxy Server could not connect: Connection not allowed by ruleset.", Kind.PERMANENT),
        ("0x07: Command not supported, or protocol error", Kind.PERMANENT),
        ("Address type not supported", Kind.PERMANENT),
        ("All offered SOCKS5 authentication methods were rejected", Kind.PERMANENT),
        ("Invalid username/password", Kind.PERMANENT),
        ("Request rejected because SOCKS server cannot connect to identd on the client", Kind.PERMANENT),
        ("Host unreachable", Kind.NOT_EXECUTED),
        ("", Kind.NOT_EXECUTED),
    ],
)
def test_refusals_are_read_from_the_texts_of_clients(text: str, kind: Kind) -> None:
    """The clients write the words of RFC 1928, in different sentences."""
    assert status.verdict_of_refusal(text).kind is kind
