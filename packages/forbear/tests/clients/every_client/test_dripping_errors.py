"""Errors whose bodies drip in: nobody waits for their end."""

import asyncio
import select
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.testing import virtual_time


def drip(server: socket.socket, time: Any) -> int:
    """Answer one request by an error that drips in, one second of virtual time a byte; return the bytes."""
    sock, _ = server.accept()
    with sock, suppress(OSError):
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for count in range(500):
            sock.sendall(b"1\r\n \r\n")
            time.advance(1)
            if select.select([sock], [], [], 0.005)[0]:
                return count
    return 500


@pytest.mark.parametrize("client", ["httpx", "requests", "aiohttp"])
def test_a_body_that_drips_in_is_left_to_the_caller(client: str) -> None:
    """Nobody waits for the end of an error in which there might be a wait: a server need not send one."""

    async def ask(url: str) -> int:
        async with (
            aiohttp.ClientSession(middlewares=(RetryMiddleware(attempts=1),)) as session,
            session.get(url) as response,
        ):
            return response.status

    with virtual_time() as time, socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        url, sent = f"http://127.0.0.1:{server.getsockname()[1]}", pool.submit(drip, server, time)
        if client == "httpx":
            with httpx.Client(transport=RetryTransport(attempts=1)) as own, own.stream("GET", url) as response:
                assert response.status_code == 503
        elif client == "requests":
            with requests.Session() as session:
                session.mount("http://", RetryAdapter(attempts=1))
                with session.get(url, stream=True) as answer:
                    assert answer.status_code == 503
        else:
            assert asyncio.run(ask(url)) == 503
        assert sent.result() < 500
