"""Bodies of requests on their way through several attempts: whole every time, or an honest refusal."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from forbear.events import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.flavours import FLAVOURS, Flavour
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

SYNC = [flavour for flavour in FLAVOURS if not flavour.is_async]
PIECES = [b"one,", b"two,", b"three"]
WHOLE = b"one,two,three"


def refused(times: int, error: type[Exception]) -> Callable[[Any], None]:
    """Refuse so many connections before anything is sent, and none after."""
    left = [times]

    def before(request: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise error("not listening yet")

    return before


class Closing(io.BytesIO):
    """A file that is closed at its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        if not piece:
            self.close()
        return piece


@EVERY
@pytest.mark.parametrize(
    "broken", [reply(503), Answer(end="reset"), Answer(end="close")], ids=["status", "reset", "close"]
)
def test_a_stream_that_comes_once_is_kept_and_sent_again(flavour: Flavour, broken: Answer) -> None:
    """The second attempt sends what a generator yielded for the first one."""
    with Wire(broken, broken, reply(200)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=flavour.once(PIECES))
        assert result.status == 200
        assert [(seen.body, seen.whole) for seen in wire.seen] == [(WHOLE, True)] * 3
        assert {seen.header("transfer-encoding") for seen in wire.seen} == {"chunked"}


@EVERY
def test_a_stream_that_broke_off_goes_on_where_it_stood(flavour: Flavour) -> None:
    """A reset in the middle of a body: the next attempt sends what was taken from the stream, then the rest of it."""
    pieces = [bytes([number]) * 50_000 for number in range(40)]
    with Wire(Answer(end="reset", read=1000), reply(200)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=flavour.once(pieces))
        assert result.status == 200
        assert not wire.seen[0].whole
        assert (wire.seen[1].body, wire.seen[1].whole) == (b"".join(pieces), True)


@EVERY
def test_an_early_response_to_half_a_body_is_a_response(flavour: Flavour) -> None:
    """If a server refuses before it has read all, 503 is repeated with the whole body, and 413 is returned."""
    pieces = [bytes([number]) * 50_000 for number in range(40)]
    for status, expected in ((503, 200), (413, 413)):
        early = Answer(reply(status, b"", "Connection: close").data, end="close", read=1000)
        with Wire(early, reply(200)) as wire:
            result = flavour.call(flavour.transport(), "PUT", wire.url, content=flavour.once(pieces))
            assert result.status == expected
            assert len(wire.seen) == (2 if expected == 200 else 1)
            assert wire.seen[-1].whole == (expected == 200)


@EVERY
def test_a_stream_beyond_the_buffer_is_sent_once(flavour: Flavour) -> None:
    """More than `buffer` bytes are not kept; the failed response is returned, and its report says why."""
    with Wire(reply(503)) as wire:
        transport = flavour.transport(buffer=10)
        result = flavour.call(transport, "PUT", wire.url, content=flavour.once(PIECES))
        assert result.status == 503
        assert [(seen.body, seen.whole) for seen in wire.seen] == [(WHOLE, True)]
        assert result.report.reason is Reason.BODY
        assert result.report.text.startswith("the body is a one-shot stream of more than 10 bytes")


@EVERY
def test_an_early_503_to_a_stream_that_cannot_come_again_is_returned(flavour: Flavour) -> None:
    """A 503 to a stream that is too long to be kept is returned as by the plain client, with its body."""
    pieces = [bytes([number]) * 50_000 for number in range(40)]
    with Wire(Answer(reply(503, b"busy", "Connection: close").data, end="close", read=1000)) as wire:
        result = flavour.call(flavour.transport(buffer=10), "PUT", wire.url, content=flavour.once(pieces))
        assert (result.status, result.content, len(wire.seen)) == (503, b"busy", 1)
    assert result.report.reason is Reason.BODY


def test_a_stream_beyond_the_buffer_waits_for_a_connection_all_the_same(flavour: Flavour) -> None:
    """Before anything was taken from a stream there is nothing to keep, so refused connections do not end the run."""
    with Wire(reply(200)) as wire:
        transport = flavour.transport(buffer=0, transport=flavour.tampered(refused(2, flavour.library.ConnectError)))
        result = flavour.call(transport, "POST", wire.url, content=flavour.once(PIECES))
        assert (result.status, [seen.body for seen in wire.seen]) == (200, [WHOLE])


@pytest.mark.parametrize("error", [RuntimeError("no more"), ConnectionResetError("the source broke")])
def test_the_error_of_a_stream_is_the_callers(flavour: Flavour, error: Exception) -> None:
    """A stream that raises is not repeated; its own error is raised unchanged, and half a body is not sent."""
    with Wire(reply(200)) as wire:
        content = flavour.once(PIECES, error)
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=content)
    assert result.error is error
    assert [(seen.body, seen.whole) for seen in wire.seen] in ([], [(WHOLE, False)])


@EVERY
def test_a_multipart_form_is_sent_again_with_its_files(flavour: Flavour) -> None:
    """A form with a file and a field arrives whole on the second attempt, under the same boundary."""
    with Wire(reply(503), reply(200)) as wire:
        files = {"file": ("name.txt", io.BytesIO(WHOLE))}
        result = flavour.call(flavour.transport(), "PUT", wire.url, files=files, data={"field": "value"})
        assert result.status == 200
        first, second = wire.seen
        assert first.body == second.body
        assert WHOLE in second.body
        assert int(second.header("content-length") or 0) == len(second.body)


@EVERY
def test_a_form_is_sent_again_however_large_it_is(flavour: Flavour) -> None:
    """A form with files that rewind is rendered anew, so nothing of it has to be kept."""
    with Wire(reply(503), Answer(end="reset", read=100), reply(200)) as wire:
        files = {"file": ("name.bin", io.BytesIO(bytes(300_000))), "bytes": ("more.bin", bytes(100_000))}
        result = flavour.call(flavour.transport(buffer=10), "PUT", wire.url, files=files, data={"field": "value"})
        assert result.status == 200
        assert (wire.seen[2].body, wire.seen[2].whole) == (wire.seen[0].body, True)
        assert len(wire.seen[0].body) > 400_000


@pytest.mark.parametrize("seekable", [False, True])
def test_a_form_with_a_pipe_in_it_is_kept_as_any_stream(flavour: Flavour, seekable: bool) -> None:
    """A file that cannot be rewound makes the form a stream that comes once, of which little is kept."""
    for buffer, requests in ((10, 1), (10_000, 2)):
        with Wire(reply(503), reply(200)) as wire:
            transport = flavour.transport(buffer=buffer)
            result = flavour.call(transport, "PUT", wire.url, files={"file": ("name.bin", Pipe(seekable))})
            assert [WHOLE in seen.body for seen in wire.seen] == [True] * requests
        if requests == 1:
            assert result.report.reason is Reason.BODY


def test_a_form_whose_file_was_closed_is_not_sent_again(flavour: Flavour) -> None:
    """If a file of a form is closed before the second attempt, the failed response's report says so."""
    with Wire(reply(503)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, files={"file": ("name.bin", Closing(WHOLE))})
    assert result.report.reason is Reason.BODY
    assert result.report.text.startswith("a file in the form can no longer be rewound; keep it open")


@pytest.mark.parametrize("flavour", SYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_a_file_is_sent_again_from_where_it_stood(flavour: Flavour, tmp_path: Path) -> None:
    """A seekable file goes back to the position it was handed over at, however large it is."""
    path = tmp_path / "file"
    path.write_bytes(b"skipped," + WHOLE)
    with path.open("rb") as file, Wire(reply(503), Answer(end="reset", read=3), reply(200)) as wire:
        file.seek(len(b"skipped,"))
        transport = flavour.transport(buffer=0)
        length = {"Content-Length": str(len(WHOLE))}
        result = flavour.call(transport, "PUT", wire.url, content=file, headers=length)
        assert result.status == 200
        assert [(seen.body, seen.whole) for seen in wire.seen] == [(WHOLE, True), (WHOLE[:3], False), (WHOLE, True)]


@pytest.mark.parametrize("flavour", SYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_a_file_that_was_closed_is_not_sent_again(flavour: Flavour) -> None:
    """If a file is closed before the second attempt, the failed response is returned and its report says what to do."""
    with Wire(reply(503)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=Closing(WHOLE))
    assert result.report.reason is Reason.BODY
    assert "keep it open" in result.report.text


class Pipe(io.RawIOBase):
    """A file that cannot be rewound, whatever it says."""

    def __init__(self, seekable: bool) -> None:
        self._pieces = list(PIECES)
        self._seekable = seekable

    def seekable(self) -> bool:
        return self._seekable

    def read(self, size: int = -1) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


@pytest.mark.parametrize("flavour", SYNC, ids=lambda flavour: flavour.name, indirect=True)
@pytest.mark.parametrize("seekable", [False, True])
def test_a_pipe_is_kept_as_any_stream(flavour: Flavour, seekable: bool) -> None:
    """A file that cannot seek, or only says it can, is recorded while it is sent."""
    with Wire(reply(503), reply(200)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=Pipe(seekable))
        assert result.status == 200
        assert [seen.body for seen in wire.seen] == [WHOLE, WHOLE]


@pytest.mark.parametrize("flavour", SYNC, ids=lambda flavour: flavour.name, indirect=True)
def test_a_stream_of_the_users_own_with_a_file_inside_is_no_file(flavour: Flavour) -> None:
    """A stream that does more than read its file (here: number it) is recorded; to rewind the file would be wrong."""

    class Numbered(flavour.library.SyncByteStream):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self._stream = io.BytesIO(WHOLE)
            self.number = 0

        def __iter__(self) -> Iterator[bytes]:
            while piece := self._stream.read(4):
                self.number += 1
                yield b"%d%s" % (self.number, piece)

    expected = b"1one,2two,3thre4e"
    with Wire(reply(503), reply(200)) as wire, virtual_time(), flavour.transport() as transport:
        headers = {"Host": "localhost", "Transfer-Encoding": "chunked"}
        request = flavour.library.Request("PUT", wire.url, headers=headers, stream=Numbered())
        transport.handle_request(request).close()
        assert [seen.body for seen in wire.seen] == [expected, expected]


def test_the_same_request_sent_twice_with_a_stream_fails_as_without_us(flavour: Flavour) -> None:
    """A generator is empty the second time; the client says so, and nothing half is sent as if it were whole."""
    with Wire(reply(200)) as wire:
        result = flavour.call(flavour.transport(), "PUT", wire.url, content=flavour.once(PIECES), times=2)
        assert isinstance(result.error, flavour.library.StreamConsumed)
        assert (wire.seen[0].body, wire.seen[0].whole) == (WHOLE, True)
        assert all(not seen.whole for seen in wire.seen[1:])


def test_a_body_is_still_whole_where_the_pool_itself_sends_it_again(flavour: Flavour) -> None:
    """A pool of HTTP/2 connections sends a request again that the server had gone away from; both times all of it."""
    seen: list[bytes] = []
    library = flavour.library

    class Twice(library.BaseTransport, library.AsyncBaseTransport):  # type: ignore[name-defined, misc]
        def handle_request(self, request: Any) -> Any:
            next(iter(request.stream))
            seen.append(b"".join(request.stream))
            return library.Response(200)

        async def handle_async_request(self, request: Any) -> Any:
            await anext(aiter(request.stream))
            seen.append(b"".join([piece async for piece in request.stream]))
            return library.Response(200)

    transport = flavour.transport(transport=Twice())
    assert flavour.call(transport, "PUT", "http://host.invalid", content=flavour.once(PIECES)).status == 200
    assert seen == [WHOLE]


ASYNCIO = [flavour for flavour in FLAVOURS if flavour.loop == "asyncio"]


@pytest.mark.parametrize("flavour", ASYNCIO, ids=lambda flavour: flavour.name, indirect=True)
def test_a_stream_that_a_transport_still_reads_is_not_sent_again(flavour: Flavour) -> None:
    """A transport that reads the body in a task of its own may answer before; then its answer is handed out."""
    library = flavour.library
    sent: list[int] = []

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    class Reading(library.AsyncBaseTransport):  # type: ignore[name-defined, misc]
        async def handle_async_request(self, request: Any) -> Any:
            sent.append(1)
            stream = aiter(request.stream)
            await anext(stream)
            self.task = asyncio.ensure_future(anext(stream))
            await checkpoint()
            return library.Response(503, content=b"busy")

        async def aclose(self) -> None:
            self.task.cancel()

    result = flavour.call(flavour.transport(transport=Reading()), "PUT", "http://host.invalid", content=body())
    assert (result.status, result.content, len(sent)) == (503, b"busy", 1)
    assert result.report.text.startswith("the body's own stream is still being read")
