"""The bodies that aiohttp sends: files and streams go again as they were, or not at all."""

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from anyio.lowlevel import checkpoint

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.events import Reason
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.retrying import retrying
from forbear_testkit.clients.wire import Answer, Wire, reply

pytestmark = pytest.mark.anyio

LINES = b"one\ntwo\nthree\n"
SESSION = "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=big&ifGenerationMatch=0"


async def test_a_file_goes_back_to_where_it_stood(tmp_path: Path) -> None:
    """The library's own payload rewinds the file, and keeps its Content-Length."""
    path = tmp_path / "file"
    path.write_bytes(b"skipped," + LINES)
    with path.open("rb") as file, Wire(reply(503), Answer(end="reset", read=3), reply(200)) as wire:
        file.seek(len(b"skipped,"))
        async with retrying() as session:
            assert (await session.put(wire.url, data=file)).status == 200
        assert [(seen.body, seen.whole) for seen in wire.seen] == [(LINES, True), (LINES[:3], False), (LINES, True)]
        assert wire.seen[-1].header("content-length") == str(len(LINES))


async def test_a_closed_file_is_not_sent_again() -> None:
    """The failed response is returned and its report says what to do."""
    file = io.BytesIO(LINES)
    with Wire(Answer(reply(503).data, first=file.close)) as wire:
        async with retrying() as session:
            told = forbear.report(await session.put(wire.url, data=file))
    assert told is not None
    assert told.reason is Reason.BODY
    assert "keep its files open" in told.text


async def test_the_error_of_a_stream_ends_the_run() -> None:
    """A stream that raises is not repeated; half a body is never sent as if it were whole."""

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        raise RuntimeError("no more")

    with Wire(reply(200)) as wire:
        async with retrying() as session:
            with pytest.raises(aiohttp.ClientConnectionError, match="no more"):
                await session.put(wire.url, data=body())
        assert not any(seen.whole for seen in wire.seen)


async def test_a_streams_own_length_is_kept() -> None:
    """A Content-Length that the caller gave is sent with each attempt, not traded for chunks."""

    async def body() -> AsyncIterator[bytes]:
        yield LINES

    with Wire(reply(503), reply(200)) as wire:
        async with retrying() as session:
            await session.put(wire.url, data=body(), headers={"Content-Length": str(len(LINES))})
        assert [(seen.body, seen.header("transfer-encoding")) for seen in wire.seen] == [(LINES, None)] * 2


@pytest.mark.parametrize("kind", ["bytes", "file", "stream"])
async def test_a_chunk_goes_on_after_asking(cloud: Cloud, tmp_path: Path, kind: str) -> None:
    """Of a chunk whose fate is unknown only the missing bytes are sent, whatever it is read from."""
    content = bytes(range(256)) * 2000
    (tmp_path / "big").write_bytes(content)

    async def stream() -> AsyncIterator[bytes]:
        yield content

    async with retrying(cloud_storage.policy) as session:
        started = await session.post(cloud.url + SESSION)
        cloud.fault(Fault.partial(262_144))
        with (tmp_path / "big").open("rb") as file:
            data = {"bytes": content, "file": file, "stream": stream()}[kind]
            headers = {"Content-Range": f"bytes 0-{len(content) - 1}/{len(content)}"}
            done = await session.put(started.headers["location"], data=data, headers=headers)
        assert (done.status, (await done.json())["size"]) == (200, str(len(content)))
    assert cloud.effects.count("storage.objects.insert") == 1
    assert [request.size for request in cloud.requests][2:] == [0, len(content) - 262_144]


class Slow(io.RawIOBase):
    """A file whose second read waits until it is let go: by then the server has the head of the request."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.go = threading.Event()
        self.begun = threading.Event()
        self.clashes: list[str] = []
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        assert whence == io.SEEK_SET
        if self.begun.is_set() and not self.go.is_set():
            self.clashes.append("rewound while it was read")
        self._position = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        if self._position:
            self.begun.set()
            if not self.go.wait(10):
                self.clashes.append("the event loop waited for the read")
        end = len(self.content) if size < 0 else self._position + size
        piece = self.content[self._position : end]
        self._position += len(piece)
        return piece

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        piece = self.read(len(view))
        view[: len(piece)] = piece
        return len(piece)


def form(file: Any) -> aiohttp.FormData:
    """A form with a file among other fields."""
    data = aiohttp.FormData({"field": "value"})
    data.add_field("file", file, filename="name")
    return data


def nested(file: Any) -> aiohttp.MultipartWriter:
    """A file in a form in a form."""
    inner, outer = aiohttp.MultipartWriter("mixed"), aiohttp.MultipartWriter("form-data")
    inner.append(file)
    outer.append(inner).set_content_disposition("form-data", name="files")
    return outer


def buffered(file: Any) -> io.BufferedReader:
    """A file that is locked while it is read."""
    return io.BufferedReader(file, 65536)


def alone(body: Any) -> Any:
    """A body by itself."""
    return body


FILES: list[Callable[[Slow], Any]] = [alone, buffered, form, nested]
CONTENT = b"".join(b"%07d\n" % number for number in range(100_000))
BUSY = Answer(reply(503, b"busy", "Connection: close").data, "close", read=0)
RESET = Answer(end="reset", read=0)
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o&ifGenerationMatch=0"


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until something is true."""
    async with asyncio.timeout(30):
        while not condition():
            await checkpoint()


@pytest.mark.parametrize("make", FILES, ids=["file", "buffered", "form", "nested form"])
@pytest.mark.parametrize("failures", [[BUSY], [BUSY, BUSY], [RESET]], ids=["503", "503 twice", "reset"])
async def test_a_file_is_not_rewound_while_a_thread_reads_it(
    make: Callable[[Slow], Any], failures: list[Answer]
) -> None:
    """A failure that comes before the body has gone: the next attempt waits for the thread, and then sends it all."""
    file = Slow(CONTENT)

    async def let_go(wire: Wire) -> None:
        await until(file.begun.is_set)
        await until(lambda: wire.connections == 2)
        for _ in range(1000):  # long enough for a thread that would not wait
            if not file.clashes:
                await checkpoint()
        file.go.set()

    with Wire(*failures, reply(200, b"{}")) as wire:
        async with retrying(cloud_storage.policy) as session:
            waiter = asyncio.ensure_future(let_go(wire))
            async with session.post(wire.url + UPLOAD, data=make(file)) as response:
                assert response.status == 200
            await waiter
        assert file.clashes == []
        assert CONTENT in wire.seen[-1].body
        assert wire.seen[-1].whole
        assert len(wire.seen) == len(failures) + 1


@pytest.mark.parametrize("make", FILES, ids=["file", "buffered", "form", "nested form"])
async def test_a_redirect_waits_for_the_thread_as_well(make: Callable[[Slow], Any]) -> None:
    """A 307 that comes before the body has gone: the library sends the same file to the next place, and all of it."""
    file = Slow(CONTENT)
    redirect = Answer(reply(307, b"", "Location: /there", "Connection: close").data, "close", read=0)

    async def let_go(wire: Wire) -> None:
        await until(lambda: wire.connections == 2)
        for _ in range(1000):
            if not file.clashes:
                await checkpoint()
        file.go.set()

    with Wire(redirect, reply(503), reply(200, b"{}")) as wire:
        async with retrying(cloud_storage.policy) as session:
            waiter = asyncio.ensure_future(let_go(wire))
            async with session.post(wire.url + UPLOAD, data=make(file)) as response:
                assert (response.status, response.url.path) == (503, "/there")
            await waiter
        assert file.clashes == []
        assert CONTENT in wire.seen[-1].body


@pytest.mark.parametrize("make", FILES, ids=["file", "buffered", "form", "nested form"])
async def test_a_failure_before_a_file_was_read_is_returned_as_by_the_plain_client(
    make: Callable[[Slow], Any],
) -> None:
    """If nothing is sent again, no thread reads the file."""
    answers = []
    for middlewares in ((), (RetryMiddleware(cloud_storage.policy),)):
        file = Slow(CONTENT)
        with Wire(BUSY) as wire:
            async with aiohttp.ClientSession(middlewares=middlewares) as session:
                async with session.post(wire.url + UPLOAD.partition("&if")[0], data=make(file)) as response:
                    answers.append((response.status, await response.read(), file.go.is_set()))
                file.go.set()
    assert answers == [(503, b"busy", False)] * 2


@pytest.mark.parametrize("make", [alone, form], ids=["stream", "form"])
async def test_a_stream_that_waits_when_the_response_comes_is_not_sent_again(make: Callable[[Any], Any]) -> None:
    """A 503 to half a stream is handed out as by the plain client, and the stream is cancelled with it."""
    ended: list[BaseException] = []
    reports: list[forbear.events.Report | None] = []

    async def body() -> AsyncIterator[bytes]:
        yield b"half"
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            ended.append(error)
            raise

    for number, middlewares in enumerate([(), (RetryMiddleware(),)], 1):
        with Wire(Answer(BUSY.data, "close", read=4)) as wire:
            async with (
                aiohttp.ClientSession(middlewares=middlewares) as session,
                session.put(wire.url, data=make(body())) as response,
            ):
                assert (response.status, await response.read()) == (503, b"busy")
            async with asyncio.timeout(30):
                while len(ended) < number:
                    await checkpoint()
            assert len(wire.seen) == 1
            reports.append(forbear.report(response))
    assert reports[0] is None
    assert reports[1] is not None
    assert reports[1].reason is Reason.BODY
    assert [type(error) for error in ended] == [asyncio.CancelledError] * 2


async def test_a_stream_that_waits_when_the_connection_breaks_is_not_sent_again() -> None:
    """The error of the connection is raised, and says why it was the last."""

    async def body() -> AsyncIterator[bytes]:
        yield b"half"
        await asyncio.Event().wait()

    with Wire(Answer(end="reset", read=4)) as wire:
        async with retrying() as session:
            with pytest.raises(aiohttp.ClientConnectionError) as caught:
                await session.put(wire.url, data=body())
        assert len(wire.seen) == 1
    told = forbear.report(caught.value)
    assert told is not None
    assert told.reason is Reason.BODY
    assert told.text.startswith("the body's own stream is still being read")


async def test_a_form_with_a_pipe_in_it_is_sent_once_but_waits_for_a_connection() -> None:
    """A part that cannot be rewound was lost with the first attempt that read it, and not before."""
    read, write = os.pipe()
    os.write(write, LINES)
    os.close(write)
    with io.FileIO(read) as pipe, Wire(reply(503, b"busy"), reply(200)) as wire:
        async with retrying() as session:
            response = await session.put(wire.url, data=form(pipe))
            assert (response.status, await response.read()) == (503, b"busy")
        assert [LINES in seen.body for seen in wire.seen] == [True]
    told = forbear.report(response)
    assert told is not None
    assert told.reason is Reason.BODY


@pytest.mark.parametrize("data", [b"bytes", io.BytesIO(b"bytes"), "form"], ids=["bytes", "file", "form"])
async def test_every_attempt_waits_for_its_own_100(data: Any) -> None:
    """A body that waits for 100 Continue is held back again by the next attempt, and sent when that may go on."""
    first = Answer(reply(503, b"", "Connection: close").data, "close", read=0)
    go_on = Answer(b"HTTP/1.1 100 Continue\r\n\r\n", read=0)
    with Wire(first, go_on, reply(200)) as wire:
        async with retrying() as session:
            data = form(io.BytesIO(b"bytes")) if data == "form" else data
            put = asyncio.ensure_future(session.put(wire.url, data=data, expect100=True))
            await until(lambda: len(wire.seen) == 2 or put.done())
            assert wire.seen[-1].header("expect") == "100-continue"
            put.cancel()
    assert len(wire.seen) == 2
