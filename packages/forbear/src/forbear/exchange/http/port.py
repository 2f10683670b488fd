"""The contract of an HTTP adapter: how one client sends one request, and how it reads the response.

`Port` is for sync clients and `AsyncPort` for async ones. A new adapter derives its port from `HttpCall`
(`exchange/http/call.py`), which does what all have in common. It adds the request's target, headers and body, and
`first`, `send`, `chunks`, `settle`, `close`, `verdict` and `broken`. It calls `drive` with the port for every request.
forbear.clients.requests is a model.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Protocol, TypeVar

from forbear.core.verdict import Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.send import Send

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class _Request(Protocol[R_contra]):
    """The members that sync and async ports share."""

    @property
    def start(self) -> Start:
        """The moment before the first attempt."""
        ...

    @property
    def exchange(self) -> Exchange:
        """The exchange, which is the state of the request. Make it when it is first read: most requests need none."""
        ...

    @property
    def is_plain(self) -> bool:
        """True if a first attempt that succeeds needs nothing from the exchange.

        That means a body in memory, and no token, no budget, no attempt timeout and no `on_result`.
        """
        ...

    def end(self) -> None:
        """Count the end of an attempt that was cancelled in the retry budget, if there is one."""
        ...

    def status(self, response: R_contra) -> int:
        """Return the status of a response."""
        ...

    def headers(self, response: R_contra) -> Mapping[str, str]:
        """Return the headers of a response; names are found in any case."""
        ...

    def adopt(self, seen: Mapping[str, str], response: R_contra) -> None:
        """Change `seen`, the headers that the caller has, into those of the response whose body the caller gets."""
        ...

    def left_broken(self) -> None:
        """Take notice that the body of a response broke, and that the request was given up then."""
        ...

    def is_read_at_once(self, response: R_contra) -> bool:
        """Return whether to read the body of a response before the next decision: a short success of a write."""
        ...

    def is_shown(self, response: R_contra) -> bool:
        """Return whether to read the body of a response so that `on_result` can judge it."""
        ...

    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict on an error of the client: permanent, transient, or proof that nothing was executed."""
        ...


class Sender(_Request[R], Protocol[R]):
    """The part of a sync port that sends one request."""

    def first(self) -> R:
        """Send the caller's request unchanged, without an attempt timeout, and return the response."""
        ...

    def send(self, send: Send, limit: float | None) -> R:
        """Send the request as `send` varies it and return the response.

        `limit` is the attempt timeout in seconds, None for none.
        """
        ...

    def shown(self, response: R) -> R:
        """Return a copy of a response for `on_result`, its body read; the response if that is longer than SHOWN.

        The body of the response itself can still be read from its start.
        """
        ...

    def settle(self, response: R) -> None:
        """Read the whole body of a response into memory."""
        ...

    def close(self, response: R) -> None:
        """Close a response at once, without reading the rest: that could outlast a deadline."""
        ...


class Port(Sender[R], Protocol[R]):
    """A sync port: it sends one request and reads the body of its response."""

    def chunks(self, response: R) -> Iterator[bytes]:
        """Return the body of a response as it arrives, without decoding it."""
        ...

    def broken(self, text: str) -> Exception:
        """Return the client's own error, with this text, for a body of the wrong length."""
        ...


class AsyncSender(_Request[R], Protocol[R]):
    """The part of an async port that sends one request."""

    async def first(self) -> R:
        """Send the caller's request unchanged, without an attempt timeout, and return the response."""
        ...

    async def send(self, send: Send, limit: float | None) -> R:
        """Send the request as `send` varies it and return the response.

        `limit` is the attempt timeout in seconds, None for none.
        """
        ...

    async def shown(self, response: R) -> R:
        """Return a copy of a response for `on_result`, its body read; the response if that is longer than SHOWN.

        The body of the response itself can still be read from its start.
        """
        ...

    async def settle(self, response: R) -> None:
        """Read the whole body of a response into memory."""
        ...

    async def close(self, response: R) -> None:
        """Close a response at once, without reading the rest: that could outlast a deadline."""
        ...


class AsyncPort(AsyncSender[R], Protocol[R]):
    """An async port: it sends one request and reads the body of its response."""

    def chunks(self, response: R) -> AsyncIterator[bytes]:
        """Return the body of a response as it arrives, without decoding it."""
        ...

    def broken(self, text: str) -> Exception:
        """Return the client's own error, with this text, for a body of the wrong length."""
        ...
