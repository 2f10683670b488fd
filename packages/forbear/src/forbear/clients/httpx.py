"""Transports for httpx that retry requests, sync and async; `install` puts them into a client that exists already."""

try:
    import httpx
except ImportError as error:
    raise ImportError('forbear.clients.httpx needs httpx; install it with: pip install "forbear[httpx]"') from error

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

_LIBRARY = HttpxLibrary(httpx)
GivenUpResponse = _LIBRARY.GivenUpResponse
"""The class of a response on which forbear gave up. It is here so that pickle finds it."""


class RetryTransport(Retrying[httpx.BaseTransport, httpx.Request, httpx.Response], httpx.BaseTransport):
    """A transport that retries requests: `httpx.Client(transport=RetryTransport())`.

    - `policy`: without one, known hosts get the recommended policy of their service, and other hosts that of RFC 9110.
      A service's policy, such as `cloud_storage.policy`, applies to every host, emulators included. Any other policy
      brings its limits, backoff and `on`; known hosts keep their tables. For one request: `client.get(url,
      extensions={"forbear": policy})`; None sends it once.
    - The keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change that policy. Tables stay.
    - `transport`: sends the requests, by default a plain `httpx.HTTPTransport()`. A client with a transport does not
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

    You get the last response as httpx returns it. Where forbear gave up, `response.extensions["forbear_report"]`
    (`forbear.report(response)`) has the report. A GET body that breaks is continued where that is safe. A short
    response (at most 64 KiB) to a write that breaks counts as lost: the write is repeated if it is always safe.
    Otherwise the note and the report (`maybe_done`) say that it had succeeded, as they do where a longer one breaks.

    >>> import httpx
    >>> statuses = iter([503, 200])
    >>> server = httpx.MockTransport(lambda request: httpx.Response(next(statuses)))
    >>> with httpx.Client(transport=RetryTransport(transport=server, attempts=3)) as client:
    ...     client.get("https://api.example.com/orders")
    <Response [200 OK]>
    """

    _library = _LIBRARY


class AsyncRetryTransport(
    AsyncRetrying[httpx.AsyncBaseTransport, httpx.Request, httpx.Response], httpx.AsyncBaseTransport
):
    """An httpx transport that retries requests, for async clients, on asyncio and trio.

    Use it as `httpx.AsyncClient(transport=AsyncRetryTransport())`; options and rules are those of `RetryTransport`.
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
    """Put retries into a client that exists already: `install(httpx.Client(proxy=...))`.

    - `client`: an `httpx.Client` or `AsyncClient`, or the client of an SDK that sends by one, such as those of
      OpenAI and Anthropic. The SDK must not retry by itself: make its client with `max_retries=0`.
    - The others are the parameters of `RetryTransport`. The statuses and headers by which the SDKs of OpenAI,
      Anthropic and Groq retry by themselves count at their `base_url`, too.

    All transports of the client are wrapped, also those of its proxies and mounts, so that its `proxy`, `verify`,
    `http2` and `limits` stay. TypeError or ValueError for another client, for one with retries, and for wrong options;
    RuntimeError if this version of httpx keeps its transports elsewhere. The client is then as it was.

    >>> import httpx
    >>> with install(httpx.Client(), attempts=3, safe="POST https://api.example.com/search") as client:
    ...     client.get(cloud.url + "/storage/v1/b/my-bucket").status_code
    200
    """
    kinds = RetryTransport, AsyncRetryTransport
    install_in(client, httpx, kinds, policy, safe=safe, apis=apis, settle=settle, buffer=buffer, **options)
    return client
