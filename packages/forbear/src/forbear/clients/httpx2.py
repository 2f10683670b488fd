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
from forbear.clients._httpx.transport import install_in
from forbear.exchange.http.options import BUFFER
from forbear.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions

    C = TypeVar("C")

_LIBRARY = HttpxLibrary(httpx2)
GivenUpResponse = _LIBRARY.GivenUpResponse
"""The class of a response on which forbear gave up. It is here so that pickle finds it."""


class RetryTransport(Retrying[httpx2.BaseTransport, httpx2.Request, httpx2.Response], httpx2.BaseTransport):
    """A transport that retries requests: `httpx2.Client(transport=RetryTransport())`.

    - `policy`: without one, known hosts get the recommended policy of their service, and other hosts that of RFC 9110.
      A service's policy, such as `cloud_storage.policy`, applies to every host, emulators included. Any other policy
      brings its limits, backoff and `on`; known hosts keep their tables. For one request: `client.get(url,
      extensions={"forbear": policy})`; None sends it once.
    - The keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change that policy. Tables stay.
    - `transport`: sends the requests, by default a plain `httpx2.HTTPTransport()`. A client with a transport does not
      apply its own `verify`, `cert`, `http1`, `http2` and `limits`, nor the proxies of environment variables, so set
      them there.
    - `safe`: requests that may be executed twice, as you vouch: patterns such as
      "POST https://api.example.com/v1/search*" (`*` stops at "/"), or a function that takes the
      `forbear.http.request.Request`.
    - `apis`: what you know of APIs, as `forbear.Api` values: their statuses, keys, waits and safe requests.
    - `settle`: whether a read may say what became of a write, if a later attempt finds it done. True: the state counts,
      whoever made it. Patterns as for `safe`: so for these requests. A function `mine(sent, read)` of two resources:
      whether they are the same write. False (default): you get the conflict.
    - `buffer`: the bytes (8 MiB) that are kept of a body that can be read only once, so that it can be sent again.

    The policy's `attempt_timeout` (seconds) becomes the client's own timeouts. It limits each wait for the network, not
    a response that keeps arriving slowly.

    You get the last response as httpx2 returns it. Where forbear gave up, `response.extensions["forbear_report"]`
    (`forbear.report(response)`) has the report. A GET body that breaks is continued where that is safe. A short
    response (at most 64 KiB) to a write that breaks counts as lost: the write is repeated if it is always safe.
    Otherwise the note and the report (`maybe_done`) say that it had succeeded, as they do where a longer one breaks.

    >>> import httpx2
    >>> statuses = iter([503, 200])
    >>> server = httpx2.MockTransport(lambda request: httpx2.Response(next(statuses)))
    >>> with httpx2.Client(transport=RetryTransport(transport=server, attempts=3)) as client:
    ...     client.get("https://api.example.com/orders")
    <Response [200 OK]>
    """

    _library = _LIBRARY


class AsyncRetryTransport(
    AsyncRetrying[httpx2.AsyncBaseTransport, httpx2.Request, httpx2.Response], httpx2.AsyncBaseTransport
):
    """An httpx2 transport that retries requests, for async clients, on asyncio and trio.

    Use it as `httpx2.AsyncClient(transport=AsyncRetryTransport())`; options and rules are those of `RetryTransport`.
    Example: see `RetryTransport`.
    """

    _library = _LIBRARY


def install(
    client: "C",
    policy: Policy | None = None,
    *,
    safe: "Safe" = (),
    apis: "Apis" = (),
    settle: "Settle" = False,
    buffer: int = BUFFER,
    **options: "Unpack[ClientOptions]",
) -> "C":
    """Put retries into a client that exists already: `install(httpx2.Client(proxy=...))`.

    - `client`: an `httpx2.Client` or `AsyncClient`, or the client of an SDK that sends by one, such as those of
      OpenAI and Anthropic. The SDK must not retry by itself: make its client with `max_retries=0`.
    - The others are the parameters of `RetryTransport`. The statuses and headers by which the SDKs of OpenAI,
      Anthropic and Groq retry by themselves count at their `base_url`, too.

    All transports of the client are wrapped, also those of its proxies and mounts, so that its `proxy`, `verify`,
    `http2` and `limits` stay. TypeError or ValueError for another client, for one with retries, and for wrong options;
    RuntimeError if this version of httpx2 keeps its transports elsewhere. The client is then as it was.

    >>> import httpx2
    >>> with install(httpx2.Client(), attempts=3, safe="POST https://api.example.com/search") as client:
    ...     client.get(cloud.url + "/storage/v1/b/my-bucket").status_code
    200
    """
    kinds = RetryTransport, AsyncRetryTransport
    install_in(client, httpx2, kinds, policy, safe=safe, apis=apis, settle=settle, buffer=buffer, **options)
    return client
