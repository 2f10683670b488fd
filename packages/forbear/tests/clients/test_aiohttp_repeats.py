"""aiohttp repeats PUT and DELETE by itself when a connection breaks; under the middleware it never does."""

import asyncio
import weakref
from typing import Any

import aiohttp
import pytest

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

pytestmark = pytest.mark.anyio

OBJECT = "/upload/storage/v1/b/bkt/o/thing"
"""A write to it has no precondition, so forbear does not repeat it."""


async def _as_it_is(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    return await handler(request)


async def _in_a_task(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    return await asyncio.ensure_future(handler(request))


async def _shielded(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    return await asyncio.shield(handler(request))


async def _gathered(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    return (await asyncio.gather(handler(request)))[0]


async def _timed(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    return await asyncio.wait_for(asyncio.ensure_future(handler(request)), 60)


async def _in_a_group(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(handler(request))  # type: ignore[arg-type,var-annotated]
    except* aiohttp.ClientError as several:
        raise several.exceptions[0] from None
    response: aiohttp.ClientResponse = task.result()
    return response


async def _renamed(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientError as error:
        raise aiohttp.ClientOSError("of a middleware") from error


OUTER = [_as_it_is, _in_a_task, _shielded, _gathered, _timed, _in_a_group, _renamed]


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("per_request", [False, True], ids=["session", "request"])
async def test_nothing_is_sent_again_behind_other_middlewares(outer: Any, per_request: bool) -> None:
    """Whatever tasks they run the request in, and whichever error of a broken connection they raise."""
    middlewares = (outer, RetryMiddleware(cloud_storage.policy), _in_a_task)
    of_session = () if per_request else middlewares
    of_call: Any = {"middlewares": middlewares} if per_request else {}
    for method, data in (("PUT", b"x"), ("DELETE", None)):
        with Wire(reply(200), Answer(end="close")) as wire, virtual_time():
            async with aiohttp.ClientSession(middlewares=of_session) as session:
                await session.get(wire.url, **of_call)
                with pytest.raises(aiohttp.ClientError) as caught:
                    await session.request(method, wire.url + OBJECT, data=data, **of_call)
            assert len(wire.seen) == 2
        assert forbear.report(caught.value) is not None


async def test_a_redirected_write_is_not_sent_again() -> None:
    """The hop after a redirect is a request of its own, and aiohttp does not repeat it either."""
    with Wire(reply(307, b"", f"Location: {OBJECT}2"), Answer(end="close")) as wire, virtual_time():
        middlewares = (_in_a_task, RetryMiddleware(cloud_storage.policy))
        async with aiohttp.ClientSession(middlewares=middlewares) as session:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await session.put(wire.url + OBJECT, data=b"x")
        assert [seen.target for seen in wire.seen] == [OBJECT, OBJECT + "2"]


async def test_a_middleware_that_repeats_the_request_is_heard() -> None:
    """An outer middleware may send the same request again; what follows it, as a redirect, is sent, too."""

    async def twice(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        try:
            return await handler(request)
        except aiohttp.ServerDisconnectedError:
            return await handler(request)

    answers = (Answer(end="close"), reply(307, b"", f"Location: {OBJECT}2"), reply(200))
    with Wire(*answers) as wire, virtual_time():
        middlewares = (twice, RetryMiddleware(cloud_storage.policy))
        async with aiohttp.ClientSession(middlewares=middlewares) as session:
            assert (await session.put(wire.url + OBJECT, data=b"x")).status == 200
        assert [seen.target for seen in wire.seen] == [OBJECT, OBJECT, OBJECT + "2"]


async def test_a_middleware_that_makes_a_response_of_the_error() -> None:
    """Nothing is left of the error that forbear gave up with."""

    async def replaced(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        try:
            return await handler(request)
        except aiohttp.ServerDisconnectedError as error:
            errors.append(weakref.ref(error))
        return await request.session.get(wire.url, middlewares=())

    errors: list[Any] = []
    with Wire(Answer(end="close"), reply(200)) as wire, virtual_time():
        middlewares = (replaced, RetryMiddleware(cloud_storage.policy))
        async with aiohttp.ClientSession(middlewares=middlewares) as session:
            assert (await session.put(wire.url + OBJECT, data=b"x")).status == 200
    assert len(wire.seen) == 2
    assert errors[0]() is None
