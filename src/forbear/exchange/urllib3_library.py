"""What an error of urllib3 means, bare or inside one of requests. It imports neither.

The rule: what cannot be told from the error alone (a TLS handshake that broke, say) has an unknown outcome.
"""

from collections.abc import Iterator
from typing import Any

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.http.status import TRANSIENT_STATUSES

_TUNNEL = "Tunnel connection failed: "


class Library:
    """The errors of urllib3; `exceptions` is its module of them."""

    def __init__(self, exceptions: Any) -> None:
        self._proxy: type[Exception] = exceptions.ProxyError
        self._unsent = (
            exceptions.ConnectTimeoutError,
            exceptions.NewConnectionError,
            exceptions.EmptyPoolError,
            exceptions.ClosedPoolError,
        )
        self._lost = (
            exceptions.ProtocolError,
            exceptions.ReadTimeoutError,
            exceptions.SSLError,
            ConnectionError,
            TimeoutError,
        )

    def verdict(self, error: Exception) -> Verdict:
        """What an error means: no connection is no execution, a connection that broke tells nothing."""
        import ssl

        causes = list(_causes(error))
        if _has(causes, ssl.SSLCertVerificationError):
            return PERMANENT  # another attempt does not make it trusted
        if _has(causes, self._proxy):
            return _proxys(causes)
        if _has(causes, *self._unsent):
            return NOT_EXECUTED
        return TRANSIENT if _has(causes, *self._lost) else PERMANENT


def _causes(error: object) -> Iterator[BaseException]:
    """An error and what led to it, which both libraries keep as an argument or as the reason."""
    while isinstance(error, BaseException):
        yield error
        inner: object = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((argument for argument in error.args if isinstance(argument, BaseException)), None)
        error = inner


def _has(causes: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _proxys(causes: list[BaseException]) -> Verdict:
    """What a proxy that did not connect means: its own refusal counts by its status."""
    for cause in causes:
        status = str(cause).rpartition(_TUNNEL)[2][:3] if _TUNNEL in str(cause) else ""
        if status.isdecimal():
            return NOT_EXECUTED if int(status) in TRANSIENT_STATUSES else PERMANENT
    return NOT_EXECUTED
