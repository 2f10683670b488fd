"""One request whose whole response is wanted, sent as often as the policy allows. It knows no operation."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from forbear.core.report import Report
from forbear.core.verdict import PERMANENT, TRANSIENT, Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.adrive import drive
from forbear.exchange.http.body import Fixed
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.options import HttpOptions, is_marked, open_exchange
from forbear.exchange.http.send import Send
from forbear.http.method import READS
from forbear.http.request import Request
from forbear.run.switch import is_off
from forbear.transfer.cloud.body import Body
from forbear.transfer.cloud.bounds import Deadline, read_whole
from forbear.transfer.errors import Stalled
from forbear.transfer.wire.errors import WireError
from forbear.transfer.wire.pool import split
from forbear.transfer.wire.response import Response

Attempt = Callable[[Mapping[str, str], Deadline], Awaitable[Response]]
"""Sends the request once, with more headers, within a deadline."""


class Call:
    """One request through its attempts; `body` is that of its response, once one was a success.

    Each attempt may take `seconds`, and its response have `most` bytes.
    """

    def __init__(
        self,
        settings: HttpOptions,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | Body,
        attempt: Attempt,
        *,
        seconds: float,
        most: int,
    ) -> None:
        self.start = Start()
        self.body = b""
        self._settings = settings
        self._method = method
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._content = content
        self._attempt = attempt
        self._seconds = seconds
        self._most = most
        self._deadline = Deadline(seconds)
        self._token: dict[str, str] = {}
        self._exchange: Exchange | None = None
        origin, target = split(url)
        self._where = origin.host, target
        plain = settings.is_plain and isinstance(content, bytes)
        self.is_plain = plain and (method in READS or not is_marked(settings, method, lambda: self._where))

    async def run(self) -> Response:
        """Send the request as often as its safety and the policy allow, and return the last response."""
        if not is_off():
            return await drive(self)
        response = await self.first()
        if self.is_read_at_once(response):
            await self.settle(response)
        return response

    @property
    def exchange(self) -> Exchange:
        """The state of the request; made when first asked for, for most requests never fail."""
        if self._exchange is None:
            body = Fixed(self._content) if isinstance(self._content, bytes) else self._content
            content = self._content if isinstance(self._content, bytes) else None
            describe = partial(Request, self._method, *self._where, self._headers, content)
            self._exchange, token = open_exchange(
                self._settings, self.start, self._method, self._where, self._headers, body, describe
            )
            if token is not None:
                self._token = dict([token])
        return self._exchange

    @property
    def report(self) -> Report | None:
        """The report, once the request was given up."""
        return None if self._exchange is None else self._exchange.report

    async def first(self) -> Response:
        """Send the request as it is."""
        self._deadline = Deadline(self._seconds, self._content)
        return await self._attempt({}, self._deadline)

    async def send(self, send: Send, limit: float | None) -> Response:
        """Send the request with what marks its attempts as one."""
        self._deadline = Deadline(self._seconds, self._content)
        return await self._attempt({**self._token, **send.headers}, self._deadline)

    def status(self, response: Response) -> int:
        """Return the status of a response."""
        return response.status

    def headers(self, response: Response) -> Mapping[str, str]:
        """Return the headers of a response, by lower-case names."""
        return response.headers

    def is_read_at_once(self, response: Response) -> bool:
        """Return whether the response is wanted whole: an error's has its message at most."""
        return response.status < 300

    async def settle(self, response: Response) -> None:
        """Read the whole body of a response."""
        self.body = await read_whole(response, self._most, self._deadline)

    async def close(self, response: Response) -> None:
        """Close a response at once."""
        response.close()

    def verdict(self, error: Exception) -> Verdict:
        """Return what an error means; those of the body's own source are final."""
        return verdict(error)


def verdict(error: Exception) -> Verdict:
    """Return what an error of one attempt means."""
    if isinstance(error, WireError):
        return error.verdict
    return TRANSIENT if isinstance(error, Stalled) else PERMANENT
