"""Retries inside requests, as an adapter for its sessions. The rules live in forbear.exchange; this only wires them."""

from functools import partial
from typing import Any

try:
    import requests
    from requests.adapters import HTTPAdapter
except ImportError as error:
    raise ImportError(
        'forbear.clients.requests needs requests; install it with: pip install "forbear[requests]"'
    ) from error

from forbear.clients.requests.port import RequestsPort
from forbear.clients.requests.response import continued, read
from forbear.exchange.http.drive import drive
from forbear.exchange.http.options import BUFFER, HttpOptions
from forbear.policy import Policy
from forbear.run.switch import is_off


class RetryAdapter(HTTPAdapter):
    """Retries what may be repeated: `session.mount("https://", RetryAdapter())`, google-auth's AuthorizedSession too.

    Without a `policy`, known hosts have the recommended policy of their service and others that of RFC 9110. A
    service's policy, such as `cloud_storage.policy`, holds for every host, emulators included. Any other policy brings
    its limits, backoff and `on`, and known hosts keep their tables. A policy for some URLs only is an adapter mounted
    at their prefix. `idempotency_header` names a header by which the API drops duplicates, such as "Idempotency-Key",
    which makes every operation repeatable, except at services that are known not to read it. Of a body that can be
    read only once, `buffer` bytes (8 MiB) are kept for a repeat. The rest is as in HTTPAdapter, whose own
    `max_retries` is off: two layers of retries multiply.

    The policy's `attempt_timeout` (seconds) bounds the timeouts of the request: each wait for the network, not a reply
    that keeps trickling in. The last reply comes out as requests gives it, and `forbear.report(response)` is its report
    where forbear gave up. A GET body that breaks halfway is continued where that is safe, through `content`,
    `iter_content` and `raw`. A short reply to a write that breaks (at most 64 KiB) counts as lost: the write is
    repeated if it always may be. Otherwise the note and the report (`maybe_done`) tell that it had succeeded, as they
    do where a longer reply breaks.
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_options"]  # noqa: RUF012 - what is pickled, declared there

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        idempotency_header: str | None = None,
        buffer: int = BUFFER,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        pool_block: bool = False,
    ) -> None:
        self._options = HttpOptions(policy, idempotency_header, buffer)
        super().__init__(pool_connections, pool_maxsize, max_retries=0, pool_block=pool_block)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request as often as its policy allows and return the reply."""
        send = partial(super().send, stream=stream, verify=verify, cert=cert, proxies=proxies)
        if is_off():
            return send(request, timeout=timeout)
        port = RequestsPort(self._options, send, request, timeout)
        response = drive(port)
        if port.needs_reader(response):
            if stream or "content-encoding" in response.headers:
                response = continued(port, response)
            else:
                read(port, response)  # the session would, and takes longer
        if port.report is not None:
            told: Any = response
            told.__forbear_report__ = port.report
        return response
