"""The responses that a storm makes up: 503, and 429 with Retry-After."""

from collections.abc import Mapping

from forbear_audit.storm.faults import INJECTED, RETRY_AFTER

_REASONS = {"503": "Service Unavailable", "429": "Too Many Requests"}


def is_status(fault: str | None) -> bool:
    """Return whether the fault is a response that the server sends instead of executing the call."""
    return fault in _REASONS


def headers(fault: str) -> dict[str, str]:
    """Return the headers of the response."""
    after = {"Retry-After": str(RETRY_AFTER)} if fault == "429" else {}
    return {"Content-Type": "text/plain", "Content-Length": str(len(body(fault)))} | after


def body(fault: str) -> bytes:
    """Return the body of the response."""
    return f"{_REASONS[fault]} {INJECTED}".encode()


def reason(fault: str) -> str:
    """Return the reason phrase."""
    return _REASONS[fault]


def has_body(response_headers: Mapping[str, str]) -> bool:
    """Return whether the headers of a response announce a body."""
    return response_headers.get("content-length", "0") != "0" or "transfer-encoding" in response_headers
