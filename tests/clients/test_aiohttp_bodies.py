"""The bodies that aiohttp sends: files and streams go again as they were, or not at all."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

import forbear
from forbear import Reason
from forbear.services import cloud_storage
from forbear.testing.cloud import Cloud, Fault
from tests.clients.retrying import retrying
from tests.clients.wire import Answer, Wire, reply

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
    """The reply comes out and its report says what to do."""
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
