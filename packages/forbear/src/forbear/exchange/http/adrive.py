"""The contract of an HTTP adapter, async, and its loop: a port sends a request, `drive` calls it to the end.

A port is a subclass of `AsyncPort`, or of `AsyncSender` if it continues no bodies. It adds the request's target,
headers and body (see `HttpCall`), and the other abstract methods. The adapter calls `drive` with it for every request.

`drive.py` has the sync form. It is generated from this file: change this one, then run `make unasync`.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, MutableMapping
from functools import partial
from typing import Any, Generic, TypeVar

from forbear.core.chain import read
from forbear.core.verdict import Verdict
from forbear.exchange.http.port import HttpCall
from forbear.exchange.http.send import Variation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.exchange.http.settling import ReadBack

R = TypeVar("R")

_NO_HEADERS: Mapping[str, str] = {}


class AsyncSender(HttpCall, Generic[R]):
    """An async port that sends one request; R is the client's class of responses. Example: see `adrive`."""

    __slots__ = ()

    _is_async = True

    @abstractmethod
    def first(self) -> Awaitable[R]:
        """Send the caller's request unchanged, without an attempt timeout, and return the response."""

    @abstractmethod
    def send(self, variation: Variation, limit: float | None) -> Awaitable[R]:
        """Send the request as `variation` says, and return the response, whose request is the caller's own.

        `limit` is the attempt timeout in seconds, None for none.
        """

    @abstractmethod
    async def read_copy(self, response: R) -> R:
        """Return a copy of a response, its body read; the response itself if `bound_reading` says that it is enough.

        The body of the response itself can still be read from its start.
        """

    @abstractmethod
    async def settle(self, response: R) -> None:
        """Read the whole body of a response into memory, from which it can be read again."""

    @abstractmethod
    async def close(self, response: R) -> None:
        """Close a response at once, without reading the rest: that could outlast a deadline."""

    @abstractmethod
    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict on an error of the client: permanent, transient, or proof that nothing was executed."""

    def read_content(self, shown: R) -> bytes:
        """Return the body of a copy that `read_copy` made, b"" if it cannot be decoded; by default its `content`."""
        content: bytes | None = read(shown, "content")
        return content or b""

    def adopt(self, seen: Mapping[str, str], response: Any) -> None:
        """Change `seen`, the headers that the caller has, into those of the response whose body the caller gets."""
        if isinstance(seen, MutableMapping) and seen is not response.headers:
            seen.clear()
            seen.update(response.headers)

    async def read_back(self, target: str, headers: Mapping[str, str], limit: float) -> R:
        """Send a GET for another target of the same server, and return the response.

        `headers` are those of the read, and `limit` is the timeout in seconds. Only ports that `can_read_back` have it.
        """
        raise NotImplementedError

    def answer(self, response: R, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Give a response whose body is in memory this status, these headers and this body; if `can_read_back`."""
        raise NotImplementedError


class AsyncPort(AsyncSender[R]):
    """An async port that also reads the body of a response. Example: see `adrive`."""

    __slots__ = ()

    @abstractmethod
    def chunks(self, response: R) -> AsyncIterator[bytes]:
        """Return the body of a response as it arrives, without decoding it."""

    @abstractmethod
    def broken(self, text: str) -> Exception:
        """Return the client's own error, with this text, for a body of the wrong length."""

    @abstractmethod
    async def keep(self, response: R, content: bytes, rest: AsyncIterator[bytes] | None = None) -> None:
        """Let the body of a response be `content`, which was read, and then what is left of `chunks` in `rest`.

        `rest` None says that all was read: close what it came from.
        """

    @abstractmethod
    def copy(self, response: R, content: bytes) -> R:
        """Return a copy of a response whose body is `content`, decoded; the response itself if that fails."""

    async def read_copy(self, response: R) -> R:
        chunks, head, size, enough = self.chunks(response), list[bytes](), 0, self.bound_reading(response)
        try:
            async for chunk in chunks:
                head.append(chunk)
                size += len(chunk)
                if enough(size):
                    await self.keep(response, b"".join(head), chunks)
                    return response
        except BaseException:
            await self.close(response)
            raise
        content = b"".join(head)
        await self.keep(response, content)
        return self.copy(response, content)

    async def settle(self, response: R) -> None:
        try:
            content = b"".join([chunk async for chunk in self.chunks(response)])
        except BaseException:
            await self.close(response)
            raise
        await self.keep(response, content)


async def drive(port: AsyncSender[R]) -> R:
    """Send a request as often as its policy allows, and return the last response or raise the last error.

    >>> sorted(AsyncHttpPort.__abstractmethods__)  # what an adapter writes: examples/adapter is a whole one
    ['_headers', '_read_body', '_scheme_and_port', '_target', 'broken', 'chunks', 'close', 'copy', 'first', 'keep',
     'send', 'verdict']
    """
    plain = port.is_plain
    if not plain:
        port.begin()
    port.enter()
    try:
        while True:
            done, headers = None, _NO_HEADERS
            try:
                response = shown = await (port.first() if plain else _send(port))
                status = port.status(response)
                if not plain and port.is_shown(response):
                    done, headers = status, port.headers(response)
                    shown = await port.read_copy(response)
                elif status >= 400 and (port.may_settle(status) or port.may_ask_to_wait(response)):
                    shown = await port.read_copy(response)
                elif port.is_read_at_once(response):
                    done, headers = status, port.headers(response)
                    await port.settle(response)
            except Exception as error:
                grant = port.exchange.failed(error, port.verdict(error), done, headers)
                if grant is None or not await grant.aask():
                    if port.number:
                        port.leave()
                    raise
            except BaseException as interrupt:  # a cancellation, too
                port.exchange.cut_off(interrupt)
                raise
            else:
                if plain and status < 400:
                    if port.number:
                        port.leave(status)
                    return response
                try:
                    if port.look is not None and shown is not response and await _read_back(port, port.look, response):
                        if port.number:
                            port.leave(200)
                        return response
                    body = None if shown is response else partial(port.read_content, shown)
                    grant = port.exchange.responded(status, port.headers(response), shown, body)
                    if grant is None or not await grant.aask():
                        if status >= 400:
                            port.end()
                        if port.number:
                            port.leave(status)
                        return response
                except BaseException:  # raised by the caller's own `on_result`
                    await port.close(response)
                    raise
                await port.close(response)
            plain = False
            await grant.asleep()
    except BaseException:  # a cancellation, too
        port.end()
        raise


def _send(port: AsyncSender[R]) -> Awaitable[R]:
    return port.send(port.exchange.variation, port.exchange.attempt_limit())


async def _read_back(port: AsyncSender[R], look: "ReadBack", response: R) -> bool:
    """Send the reads of `look`; return whether `response`, a conflict, has become the one to an earlier attempt."""
    try:
        for target in look.targets:
            read = await port.read_back(target, look.headers, look.deadline - port.runtime.monotonic())
            shown = await port.read_copy(read)
            content = None if shown is read else port.read_content(shown)
            look.add(port.status(read), port.headers(read), content)
            await port.close(read)
    except Exception:
        return False
    finally:
        port.look = None
    answer = look.settle()
    if answer is None:
        return False
    from forbear.exchange.http.settling import end_settled  # most requests have no conflict

    end_settled(port.exchange, port.status(response), port.headers(response))
    port.answer(response, *answer)
    return True
