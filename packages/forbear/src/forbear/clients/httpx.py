"""Transports for httpx that retry requests, sync and async; `install` puts them into a client that exists already."""

try:
    import httpx
except ImportError as error:
    raise ImportError('forbear.clients.httpx needs httpx; install it with: pip install "forbear[httpx]"') from error

from forbear.clients._httpx.aio import AsyncRetrying
from forbear.clients._httpx.errors import HttpxLibrary
from forbear.clients._httpx.sync import Retrying
from forbear.clients._httpx.transport import DOCUMENTATION, installer

_LIBRARY = HttpxLibrary(httpx)
GivenUpResponse = _LIBRARY.GivenUpResponse
"""The class of a response on which forbear gave up. It is here so that pickle finds it."""


class RetryTransport(Retrying[httpx.BaseTransport, httpx.Request, httpx.Response], httpx.BaseTransport):  # noqa: D101
    __doc__ = DOCUMENTATION.format(module="httpx")

    _library = _LIBRARY


class AsyncRetryTransport(
    AsyncRetrying[httpx.AsyncBaseTransport, httpx.Request, httpx.Response], httpx.AsyncBaseTransport
):
    """An httpx transport that retries requests, for async clients, on asyncio and trio.

    Use it as `httpx.AsyncClient(transport=AsyncRetryTransport())`; options and rules are those of `RetryTransport`.
    Example: see `RetryTransport`.
    """

    _library = _LIBRARY


install = installer(httpx, (RetryTransport, AsyncRetryTransport))
