"""A program: an HTTP server on loopback that answers every request alike, as fast as it can, in a process of its own.

It prints its port and serves until its input ends. It stands alone: it knows neither forbear nor the benchmarks.
"""

import asyncio
import sys

_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 1024\r\n\r\n" + bytes(1024)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")  # requests without a body only
            writer.write(_REPLY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
