"""Transports for httpx2 that retry requests, sync and async; `install` puts them into a client that exists.

Generated from httpx.py: change that file, then run `make unasync`.
"""

try:
    import httpx2
except ImportError as error:
    raise ImportError('forbear.clients.httpx2 needs httpx2; install it with: pip install "forbear[httpx2]"') from error

from forbear.clients._httpx.aio import AsyncRetrying
from forbear.clients._httpx.errors import HttpxLibrary
from forbear.clients._httpx.sync import Retrying
from forbear.clients._httpx.transport import DOCUMENTATION, installer

_LIBRARY = HttpxLibrary(httpx2)
GivenUpResponse = _LIBRARY.GivenUpResponse
"""The class of a response on which forbear gave up. It is here so that pickle finds it."""


class RetryTransport(Retrying[httpx2.BaseTransport, httpx2.Request, httpx2.Response], httpx2.BaseTransport):  # noqa: D101
    __doc__ = DOCUMENTATION.format(module="httpx2")

    _library = _LIBRARY


class AsyncRetryTransport(
    AsyncRetrying[httpx2.AsyncBaseTransport, httpx2.Request, httpx2.Response], httpx2.AsyncBaseTransport
):
    """An httpx2 transport that retries requests, for async clients, on asyncio and trio.

    Use it as `httpx2.AsyncClient(transport=AsyncRetryTransport())`; options and rules are those of `RetryTransport`.
    Example: see `RetryTransport`.
    """

    _library = _LIBRARY


install = installer(httpx2, (RetryTransport, AsyncRetryTransport))
