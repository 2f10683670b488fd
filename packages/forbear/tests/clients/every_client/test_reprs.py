"""Adapters of all clients show themselves as the call that makes them, without what has its default."""

import asyncio
from collections.abc import Callable

import grpc
import pytest

from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.redis import AsyncRedis, Redis, RedisCluster
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.clients.valkey import Valkey

CODES = [grpc.StatusCode.RESOURCE_EXHAUSTED]
CASES: list[tuple[Callable[[], object], str]] = [
    (RetryTransport, "RetryTransport()"),
    (lambda: RetryTransport(attempts=3), "RetryTransport(attempts=3)"),
    (lambda: AsyncRetryTransport(timeout=5), "AsyncRetryTransport(timeout=5)"),
    (lambda: RetryAdapter(safe="POST https://x.org/*"), "RetryAdapter(safe=('POST https://x.org/*',))"),
    (lambda: RetryMiddleware(attempts=2), "RetryMiddleware(attempts=2)"),
    (lambda: Retry(attempts=3), "Retry(attempts=3)"),
    (RetryInterceptor, "RetryInterceptor()"),
    (
        lambda: RetryInterceptor(attempts=3, safe="/a.B/*", not_executed=CODES),
        "RetryInterceptor(attempts=3, safe=['/a.B/*'], not_executed=[StatusCode.RESOURCE_EXHAUSTED])",
    ),
]


@pytest.mark.parametrize(("make", "shown"), CASES, ids=[shown for _, shown in CASES])
def test_an_adapter_shows_the_call_that_makes_it(make: Callable[[], object], shown: str) -> None:
    """Only what the user chose is shown."""
    assert repr(make()) == shown


def test_the_interceptors_of_asyncio_show_what_made_them() -> None:
    """All four are parts of one call."""

    async def make() -> set[str]:
        return {repr(each) for each in aio_interceptors(timeout=4)}

    assert asyncio.run(make()) == {"<one of aio_interceptors(timeout=4)>"}


@pytest.mark.parametrize("kind", [Redis, AsyncRedis, Valkey])
def test_a_client_of_redis_adds_its_policy(kind: type[Redis]) -> None:
    """The library shows the server; a policy and a vouch of the user follow."""
    assert "policy" not in repr(kind())
    shown = repr(kind(attempts=3, safe="INCR"))
    assert shown.startswith(f"<{kind.__module__}.{kind.__name__}(")
    assert "policy=retry(verdict_of_exception, attempts=3" in shown
    assert shown.endswith(", safe=['INCR']>")


def test_a_cluster_client_adds_its_policy() -> None:
    """It has no server yet, so that is left out here."""
    made = RedisCluster.__new__(RedisCluster)
    made._set_up(None, (), {})
    assert repr(made).endswith(", policy=None>")
