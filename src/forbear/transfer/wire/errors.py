"""Errors of the wire, each with what it proves of the request: nothing was sent, or the outcome is unknown."""

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.http.status import TRANSIENT_STATUSES, reason
from forbear.transfer.errors import TransferError


class WireError(TransferError):
    """A request that got no response, or not all of it."""

    verdict: Verdict = TRANSIENT


class NotConnected(WireError):
    """No connection could be opened: no byte of the request was sent."""

    verdict = NOT_EXECUTED
    hint = "check the network, the endpoint and the proxy"


class Untrusted(NotConnected):
    """The server's certificate is not valid, and will be no other one in a moment."""

    verdict = PERMANENT


class ProxyRefused(NotConnected):
    """The proxy opened no tunnel and answered `status` instead."""

    def __init__(self, proxy: str, status: int) -> None:
        super().__init__(f"the proxy {proxy} opened no tunnel: {reason(status)}")
        self.verdict = NOT_EXECUTED if status in TRANSIENT_STATUSES else PERMANENT

    def __reduce__(self) -> tuple[object, ...]:
        return WireError, self.args, self.__dict__


class Broken(WireError):
    """The connection ended before the response did."""


class BadResponse(WireError):
    """The server does not speak HTTP/1.1, or says more than any response should."""
