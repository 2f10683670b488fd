"""The sync loops around an exchange and a download; a port is the adapter's own way to send. They decide nothing."""

from itertools import chain

from forbear.core.verdict import TRANSIENT
from forbear.http.ranges import Unresumable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from typing import Protocol, TypeVar

    from forbear.core.verdict import Verdict
    from forbear.exchange.download import Download
    from forbear.exchange.exchange import Exchange
    from forbear.exchange.send import Send

    R = TypeVar("R")

    class Port(Protocol[R]):
        """How one request is sent by one client."""

        def send(self, send: Send, limit: float | None) -> R:
            """Send a variation of the request; `limit` is the attempt timeout in seconds."""
            ...

        def status(self, response: R) -> int:
            """The status of a response."""
            ...

        def headers(self, response: R) -> Mapping[str, str]:
            """The headers of a response, by lower-case names."""
            ...

        def discard(self, response: R) -> None:
            """Close a response that nobody will read."""
            ...

        def chunks(self, response: R) -> Iterator[bytes]:
            """The body of a response as it comes over the wire."""
            ...

        def verdict(self, error: Exception) -> Verdict:
            """What an error of the client means."""
            ...


def drive(exchange: "Exchange", port: "Port[R]") -> "R":
    """Send the request as often as its policy allows and return the reply."""
    while True:
        try:
            response = port.send(exchange.send, exchange.attempt_limit())
        except Exception as error:
            delay = exchange.failed(error, port.verdict(error))
            if delay is None:
                raise
        else:
            delay = exchange.answered(port.status(response), port.headers(response), response)
            if delay is None:
                return response
            port.discard(response)
        exchange.runtime.sleep(delay)


def read(download: "Download", exchange: "Exchange", port: "Port[R]", chunks: "Iterator[bytes]") -> "Generator[bytes]":
    """The body that `chunks` begin, gone on with in further replies where it breaks."""
    resumed: tuple[R, Iterator[bytes]] | None = None
    try:
        while True:
            try:
                for chunk in chunks:
                    download.received(chunk)
                    yield chunk
            except Exception as error:
                if resumed is not None:
                    port.discard(resumed[0])
                resumed = _resume(download, exchange, port, error)
                if resumed is None:
                    raise
                chunks = resumed[1]
            else:
                download.finished()
                return
    finally:
        if resumed is not None:
            port.discard(resumed[0])


def _resume(
    download: "Download", exchange: "Exchange", port: "Port[R]", error: Exception
) -> "tuple[R, Iterator[bytes]] | None":
    """A response and what of its chunks goes on with the body, None to let `error` out."""
    verdict = port.verdict(error)
    while (delay := download.broken(error, verdict)) is not None:
        exchange.runtime.sleep(delay)
        try:
            response = port.send(download.send, exchange.attempt_limit())
        except Exception as again:
            verdict = port.verdict(again)
            continue
        try:
            refusal = download.refused(port.status(response), port.headers(response))
            if refusal is None:
                chunks = port.chunks(response)
                rest = b""
                while download.repeats:
                    rest = download.repeat(next(chunks, b""))
                return response, chain((rest,), chunks) if rest else chunks
            verdict = refusal
        except Unresumable:
            verdict = TRANSIENT  # the download knows why, and gives up
        except Exception as again:
            verdict = port.verdict(again)
        port.discard(response)
    return None
