"""Errors of the wire, each with what it proves of the request: nothing was sent, or the outcome is unknown."""

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.http.status import TRANSIENT_STATUSES, reason


class WireError(Exception):
    """A request that got no response, or not all of it."""

    verdict: Verdict = TRANSIENT


class NotConnected(WireError):
    """No connection could be opened: no byte of the request was sent."""

    verdict = NOT_EXECUTED


class Untrusted(NotConnected):
    """The server's certificate is not valid, and will be no other one in a moment."""

    verdict = PERMANENT


class ProxyRefused(NotConnected):
    """The proxy opened no tunnel and answered `status` instead."""

    def __init__(self, proxy: str, status: int) -> None:
        super().__init__(proxy, status)
        self.verdict = NOT_EXECUTED if status in TRANSIENT_STATUSES else PERMANENT

    def __str__(self) -> str:
        proxy, status = self.args
        return f"the proxy {proxy} opened no tunnel: {reason(status)}"


class Broken(WireError):
    """The connection ended before the response did."""


class BadResponse(WireError):
    """The server does not speak HTTP/1.1, or says more than any response should."""
