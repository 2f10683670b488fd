"""Further clients, in the shape of the flavours of httpx, so that the tables of cases run through them as well."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from forbear.clients.requests import RetryAdapter
from forbear.testing import virtual_time
from forbear.testing.virtual_time import VirtualTime
from tests.clients.flavours import FLAVOURS, READ_TIMEOUT, Result


class Requests:
    """requests, with an adapter for all hosts."""

    name = "requests"
    is_async = False
    library = SimpleNamespace(
        __name__="requests",
        TransportError=requests.RequestException,
        NetworkError=requests.ConnectionError,
        ReadTimeout=requests.ReadTimeout,
        RemoteProtocolError=requests.exceptions.ChunkedEncodingError,
        TimeoutException=requests.Timeout,
        HTTPStatusError=requests.HTTPError,
    )

    def base(self) -> None:
        """There is nothing below the adapter."""

    def transport(self, policy: Any = None, *, transport: None = None, **options: Any) -> RetryAdapter:
        """A retrying adapter."""
        return RetryAdapter(policy, **options)

    def once(self, pieces: Iterable[bytes], end: Exception | None = None) -> Iterator[bytes]:
        """A body that comes once, in these pieces, and then ends or raises."""
        yield from pieces
        if end is not None:
            raise end

    def call(
        self,
        transport: RetryAdapter,
        method: str,
        url: str,
        *,
        content: Any = None,
        stop_after: int | None = None,
        clock: Callable[[VirtualTime], object] = lambda _: None,
        client: Mapping[str, Any] | None = None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the reply, with `stop_after` piece by piece."""
        timeout = (client or {}).get("timeout", READ_TIMEOUT)
        with virtual_time(seed=7) as time, requests.Session() as session:
            session.trust_env = False
            session.mount("http://", transport)
            clock(time)
            result = Result(slept=time.slept)
            try:
                stream = stop_after is not None
                request.setdefault("data", content)
                result.response = session.request(method, url, timeout=timeout, stream=stream, **request)
                if stop_after is None:
                    result.pieces = [result.response.content]
                else:
                    with result.response:
                        for piece in result.response.iter_content(1):
                            if result.add(piece) >= stop_after:
                                break
            except Exception as error:
                result.error = error
        return result


OTHERS = [Requests()]

EVERY = pytest.mark.parametrize("flavour", [*FLAVOURS, *OTHERS], ids=lambda flavour: flavour.name, indirect=True)
"""Run a test through the flavours of httpx and through all other clients."""
