"""The async loops around an exchange and a download: the sync ones with `await`. They decide nothing."""

from forbear.core.verdict import TRANSIENT
from forbear.http.ranges import Unresumable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping
    from typing import Protocol, TypeVar

    from forbear.core.verdict import Verdict
    from forbear.exchange.download import Download
    from forbear.exchange.exchange import Exchange
    from forbear.exchange.send import Send

    R = TypeVar("R")

    class AsyncPort(Protocol[R]):
        """How one request is sent by one async client."""

        async def send(self, send: Send, limit: float | None) -> R:
            """Send a variation of the request; `limit` is the attempt timeout in seconds."""
            ...

        def status(self, response: R) -> int:
            """The status of a response."""
            ...

        def headers(self, response: R) -> Mapping[str, str]:
            """The headers of a response, by lower-case names."""
            ...

        async def discard(self, response: R) -> None:
            """Close a response that nobody will read."""
            ...

        def chunks(self, response: R) -> AsyncIterator[bytes]:
            """The body of a response as it comes over the wire."""
            ...

        def verdict(self, error: Exception) -> Verdict:
            """What an error of the client means."""
            ...


async def drive(exchange: "Exchange", port: "AsyncPort[R]") -> "R":
    """Send the request as often as its policy allows and return the reply."""
    while True:
        try:
            response = await port.send(exchange.send, exchange.attempt_limit())
        except Exception as error:
            delay = exchange.failed(error, port.verdict(error))
            if delay is None:
                raise
        else:
            delay = exchange.answered(port.status(response), port.headers(response), response)
            if delay is None:
                return response
            await port.discard(response)
        await exchange.runtime.asleep(delay)


async def read(
    download: "Download", exchange: "Exchange", port: "AsyncPort[R]", chunks: "AsyncIterator[bytes]"
) -> "AsyncGenerator[bytes]":
    """The body that `chunks` begin, gone on with in further replies where it breaks."""
    resumed: tuple[R, AsyncIterator[bytes]] | None = None
    try:
        while True:
            try:
                async for chunk in chunks:
                    download.received(chunk)
                    yield chunk
            except Exception as error:
                if resumed is not None:
                    await port.discard(resumed[0])
                resumed = await _resume(download, exchange, port, error)
                if resumed is None:
                    raise
                chunks = resumed[1]
            else:
                download.finished()
                return
    finally:
        if resumed is not None:
            await port.discard(resumed[0])


async def _resume(
    download: "Download", exchange: "Exchange", port: "AsyncPort[R]", error: Exception
) -> "tuple[R, AsyncIterator[bytes]] | None":
    """A response and what of its chunks goes on with the body, None to let `error` out."""
    verdict = port.verdict(error)
    while (delay := download.broken(error, verdict)) is not None:
        await exchange.runtime.asleep(delay)
        try:
            response = await port.send(download.send, exchange.attempt_limit())
        except Exception as again:
            verdict = port.verdict(again)
            continue
        try:
            refusal = download.refused(port.status(response), port.headers(response))
            if refusal is None:
                chunks = port.chunks(response)
                rest = b""
                while download.repeats:
                    rest = download.repeat(await anext(chunks, b""))
                return response, _chain(rest, chunks) if rest else chunks
            verdict = refusal
        except Unresumable:
            verdict = TRANSIENT  # the download knows why, and gives up
        except Exception as again:
            verdict = port.verdict(again)
        await port.discard(response)
    return None


async def _chain(first: bytes, others: "AsyncIterator[bytes]") -> "AsyncIterator[bytes]":
    yield first
    async for chunk in others:
        yield chunk
