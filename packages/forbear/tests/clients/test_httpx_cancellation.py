"""Cancellation and interrupts pass straight through, wherever they strike, and leave no connection behind."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.abc import TaskStatus

from forbear import Constant, Limits, Policy
from forbear.events import Event, Scheduled
from forbear.services import rfc9110
from forbear_testkit.clients.flavours import FLAVOURS, READ_TIMEOUT, Flavour, busy
from forbear_testkit.clients.wire import Answer, Wire, reply

ASYNC = [flavour for flavour in FLAVOURS if flavour.is_async]
SYNC = [flavour for flavour in FLAVOURS if not flavour.is_async]
PATIENT = rfc9110.policy.with_limits(Limits(attempts=5, timeout=None)).with_backoff(Constant(1000))
AT_ONCE = PATIENT.with_backoff(Constant(0))
BROKEN = reply(200, b"every", 'ETag: "one"', length=18, end="close")


async def _cancelled(
    flavour: Flavour, policy: Policy, url: str, due: Callable[[], Awaitable[object]], read: list[bytes]
) -> None:
    """Get `url` and cancel that when it is `due`."""
    transport = flavour.transport(policy)
    async with flavour.client(transport) as client:

        async def get() -> None:
            async with client.stream("GET", url) as response:
                async for piece in response.aiter_raw():
                    read[0] += piece

        async with anyio.create_task_group() as group:
            group.start_soon(get)
            await due()
            for _ in range(20):  # into the wait, or the read, that follows
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert group.cancel_scope.cancelled_caught
        assert busy(transport) == 0


@pytest.mark.parametrize("flavour", ASYNC, ids=lambda flavour: flavour.name, indirect=True)
@pytest.mark.parametrize(
    ("script", "requests", "expected"),
    [
        ([Answer(end="stall")], 1, b""),
        ([reply(503), Answer(end="stall")], 2, b""),
        ([reply(200, b"every", length=18, end="stall")], 1, b"every"),
        ([BROKEN, Answer(end="stall")], 2, b"every"),
        ([BROKEN, reply(200, b"eve", 'ETag: "one"', length=18, end="stall")], 2, b"every"),
    ],
    ids=[
        "in an attempt", "in a retry", "in a body", "in a resumption", "in the part that is compared",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings(
    "ignore:Exception ignored (in.|while finalizing generator) <async_generator object"
    ":pytest.PytestUnraisableExceptionWarning"
)
def test_cancelling_passes_through(flavour: Flavour, script: list[Answer], requests: int, expected: bytes) -> None:
    """Whatever a request waits for, cancelling it ends it at once, with no further attempt and no open connection."""
    sent = threading.Event()
    last = script[-1]
    stalled = Answer(last.data, last.end, then=sent.set)
    read = [b""]
    with Wire(*script[:-1], stalled) as wire:

        async def due() -> None:
            assert await anyio.to_thread.run_sync(sent.wait, READ_TIMEOUT)
            while read != [expected]:
                await anyio.lowlevel.checkpoint()

        anyio.run(_cancelled, flavour, AT_ONCE, wire.url, due, read, backend=flavour.loop or "")
        assert len(wire.seen) == requests
    assert read == [expected]


@pytest.mark.parametrize("flavour", ASYNC, ids=lambda flavour: flavour.name, indirect=True)
@pytest.mark.parametrize("answer", [reply(503), BROKEN, Answer(end="reset")], ids=["status", "body", "reset"])
def test_cancelling_a_wait_ends_it(flavour: Flavour, answer: Answer) -> None:
    """A wait of a thousand seconds is over when it is cancelled."""
    waiting = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Scheduled):
            waiting.set()

    async def due() -> None:
        while not waiting.is_set():
            await anyio.lowlevel.checkpoint()

    with Wire(answer) as wire:
        anyio.run(_cancelled, flavour, PATIENT.with_on_event(listen), wire.url, due, [b""], backend=flavour.loop or "")
        assert len(wire.seen) == 1


class Interrupted:
    """A stream that is interrupted after its first piece, and knows whether it was closed."""

    closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield b"e"
        raise KeyboardInterrupt

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("flavour", SYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_an_interrupt_passes_through_and_closes_what_was_read(flavour: Flavour) -> None:
    """Ctrl-C while a response is read ends the request and closes the response."""
    library = flavour.library
    stream: Any = type("Stream", (Interrupted, library.SyncByteStream), {})()
    sent: list[Any] = []

    def answer(request: Any) -> Any:
        sent.append(request)
        return library.Response(200, headers={"Content-Length": "10"}, stream=stream)

    transport = flavour.transport(transport=library.MockTransport(answer))
    with flavour.client(transport) as client, pytest.raises(KeyboardInterrupt):
        client.get("http://localhost")
    assert (len(sent), stream.closed > 0) == (1, True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_programs_is_no_failure(flavour: Flavour, error: type[BaseException]) -> None:
    """An exception that is not an Exception is never retried."""
    sent: list[Any] = []

    def before(request: Any) -> None:
        sent.append(request)
        raise error

    transport = flavour.transport(transport=flavour.tampered(before))
    with pytest.raises(error):
        flavour.call(transport, "GET", "http://localhost")
    assert len(sent) == 1


def test_a_stream_may_be_closed_by_another_while_it_is_read(flavour: Flavour) -> None:
    """Closing a response from another thread or task is as harmless as without us."""
    if flavour.is_async:
        anyio.run(_close_meanwhile, flavour, backend=flavour.loop or "")
        return
    with Wire(reply(200, b"every", length=18, end="stall")) as wire, flavour.client(flavour.transport()) as client:
        with client.stream("GET", wire.url) as response:
            pieces = response.iter_raw()
            assert next(pieces) == b"every"
            closing = threading.Thread(target=response.close)
            closing.start()
            closing.join()
        assert busy(client._transport) == 0


async def _close_meanwhile(flavour: Flavour) -> None:
    with Wire(reply(200, b"every", length=18, end="stall")) as wire:
        async with flavour.client(flavour.transport(rfc9110.policy.with_attempts(1))) as client:
            response = await client.send(client.build_request("GET", wire.url), stream=True)
            errors: list[BaseException] = []

            async def read(*, task_status: TaskStatus[None]) -> None:
                try:
                    async for _ in response.aiter_raw():
                        task_status.started()
                except Exception as error:
                    errors.append(error)

            async with anyio.create_task_group() as group:
                await group.start(read)
                for _ in range(10):
                    await anyio.lowlevel.checkpoint()
                await response.aclose()
            assert [type(error).__name__ for error in errors] in (["ReadError"], [])
            assert busy(client._transport) == 0
