"""A write that a worker process gave up as unsafe is not repeated by the process that waits for it."""

import asyncio
import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import grpc
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.grpc import RetryInterceptor
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.wire import Answer, Wire, reply

pytestmark = pytest.mark.soak  # starting processes takes seconds

LOST, BUSY = Answer(end="close"), reply(503, b"x")
OUTER = forbear.retry(on=Exception, attempts=3, backoff=forbear.Constant(0))


def _with_httpx(url: str) -> None:
    with httpx.Client(transport=RetryTransport(), trust_env=False) as client:
        client.post(url, content=b"x")


def _httpx_response(url: str) -> httpx.Response:
    with httpx.Client(transport=RetryTransport(), trust_env=False) as client:
        return client.post(url, content=b"x")


def _with_requests(url: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter())
        session.post(url, data=b"x", timeout=10).raise_for_status()


def _with_urllib3(url: str) -> None:
    with urllib3.PoolManager(retries=Retry(), timeout=10) as pool:
        pool.request("POST", url, body=b"x")


def _with_aiohttp(url: str) -> None:
    async def post() -> None:
        async with aiohttp.ClientSession(middlewares=(RetryMiddleware(),), raise_for_status=True) as session:
            await session.post(url, data=b"x")

    asyncio.run(post())


def _with_grpc(target: str) -> None:
    with grpc.insecure_channel(target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor())
        channel.unary_unary("/t.T/Say")(b"x")


class Failed(Exception):
    """The error of the code around the client."""


def _caused(url: str) -> None:
    try:
        _with_httpx(url)
    except httpx.HTTPError as error:
        raise Failed from error


def _anew(url: str) -> None:
    try:
        _with_requests(url)
    except requests.RequestException:
        raise Failed  # noqa: B904


def _after(work: Callable[[str], None], url: str) -> None:
    """Fail once more, in a policy of the worker's own that leaves it to others."""
    forbear.retry(on=LookupError, attempts=2).call(_from_none, work, url)


def _from_none(work: Callable[[str], None], url: str) -> None:
    try:
        work(url)
    except Exception:
        raise Failed from None


CASES: list[tuple[Callable[..., object], Answer, tuple[Any, ...]]] = [
    (_with_httpx, LOST, ()),
    (_with_requests, LOST, ()),
    (_with_requests, BUSY, ()),
    (_with_urllib3, LOST, ()),
    (_with_aiohttp, LOST, ()),
    (_caused, LOST, ()),
    (_anew, BUSY, ()),
    (_after, LOST, (_with_httpx,)),
]
UNPICKLABLE: list[tuple[Callable[..., object], Answer, tuple[Any, ...]]] = [(_with_aiohttp, BUSY, ())]
"""Errors that pickle refuses; the pool of multiprocessing then brings no traceback."""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_through_processes(method: str) -> None:
    """The executor of concurrent.futures and the pool of multiprocessing bring what must not be repeated."""
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor, context.Pool(1) as pool:
        assert executor.submit(os.getpid).result() != os.getpid()

        def submitted(work: Any, *args: Any) -> object:
            return executor.submit(work, *args).result()

        def applied(work: Any, *args: Any) -> object:
            return pool.apply(work, args)

        runs: list[Any] = [submitted, applied]
        for run in runs:
            work: Any
            for work, answer, args in CASES if run is not submitted else [*CASES, *UNPICKLABLE]:
                with Wire(answer) as wire:
                    with pytest.raises(Exception):  # noqa: B017, PT011
                        OUTER.call(partial(run, work, *args, wire.url))
                    assert len(wire.seen) == 1, (work, answer)
            with Wire(BUSY) as wire:
                policy = OUTER.with_on_result(lambda response: response.status_code == 503)
                assert policy.call(run, _httpx_response, wire.url).status_code == 503
                assert len(wire.seen) == 1
        with running() as server:
            server.fail(grpc.StatusCode.UNAVAILABLE, times=9)
            with pytest.raises(Exception):  # noqa: B017, PT011
                OUTER.call(submitted, _with_grpc, server.target)
            assert len(server.calls) == 1
