"""A command that is cut off under way may have been executed: no outer policy sends it again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import forbear
from forbear_testkit.clients.cut_off import OUTER, WAYS, Arrival, Failed, by_a_task, by_a_timeout
from forbear_testkit.clients.redis.flavours import FLAVOURS, Flavour
from forbear_testkit.clients.redis.proxy import FORWARD, HANG, Command, Fate, proxy

ASYNC = [flavour for flavour in FLAVOURS if flavour.is_async]


def _increment(client: Any) -> Awaitable[object]:
    result: Awaitable[object] = client.incr("n")
    return result


async def _in_a_pipeline(client: Any) -> object:
    async with client.pipeline(transaction=False) as pipe:
        return await pipe.get("n").incr("n").execute()


async def _in_a_transaction(client: Any) -> object:
    async with client.pipeline() as pipe:
        return await pipe.incr("n").execute()


async def _under_watch(client: Any) -> object:
    async with client.pipeline() as pipe:
        await pipe.watch("n")
        pipe.multi()
        return await pipe.incr("n").execute()


async def _at_once(client: Any) -> object:
    async with client.pipeline() as pipe:
        await pipe.watch("n")
        return await pipe.incr("n")


def _by_transact(client: Any) -> Awaitable[object]:
    def add(pipe: Any) -> None:
        pipe.multi()
        pipe.incr("n")

    result: Awaitable[object] = client.transaction(add, "n")
    return result


@pytest.mark.parametrize(
    ("send", "way"),
    [(_increment, way) for way in WAYS]
    + [(send, by_a_task) for send in (_in_a_pipeline, _in_a_transaction, _under_watch, _at_once, _by_transact)],
)
@pytest.mark.parametrize("flavour", ASYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_an_increment_that_is_cut_off_is_sent_once(
    flavour: Flavour, path: str, send: Callable[[Any], Awaitable[object]], way: Any
) -> None:
    """The error that the function raises has the report."""
    last = b"EXEC" if send in (_in_a_transaction, _under_watch, _by_transact) else b"INCRBY"

    async def main() -> None:
        arrival = Arrival()

        def script(command: Command) -> Fate:
            if command[0] != last:
                return FORWARD
            arrival.come()
            return HANG

        with proxy(path, script) as seen:
            client = flavour.ours(host="127.0.0.1", port=seen.port)

            @OUTER
            async def order() -> None:
                await way(lambda: send(client), arrival)

            with pytest.raises((TimeoutError, Failed, ExceptionGroup)) as caught:
                await order()
            await client.aclose()
        assert arrival.count == 1
        found = forbear.report(caught.value)
        assert found is not None
        assert found.reason is forbear.events.Reason.UNSAFE

    asyncio.run(main())


@pytest.mark.parametrize("flavour", ASYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_an_increment_that_was_not_sent_yet_is_sent_again(flavour: Flavour, path: str) -> None:
    """Whoever is cut off while he connects has sent nothing."""

    async def main() -> None:
        arrival = Arrival()

        def script(command: Command) -> Fate:
            if command[0] in (b"HELLO", b"CLIENT") and arrival.count < 2:
                arrival.come()
                return HANG
            return FORWARD

        with proxy(path, script) as seen:
            client = flavour.ours(host="127.0.0.1", port=seen.port, protocol=3)

            @OUTER
            async def order() -> object:
                if arrival.count < 2:
                    await by_a_timeout(lambda: client.incr("n"), arrival)
                return await client.incr("n")

            assert await order() == 1
            await client.aclose()

    asyncio.run(main())
