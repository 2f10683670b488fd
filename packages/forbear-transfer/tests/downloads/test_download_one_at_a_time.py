"""Downloads from a server with one thread and one connection: no response stays open during the next request."""

import asyncio
import io
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.downloads import MIB, URL, fetched, random_bytes

DATA = random_bytes(9 * MIB)
CRC = crc32c_of(DATA)
VERSION = {
    "bucket": URL.bucket, "name": URL.name, "generation": "7", "metageneration": "1", "size": str(len(DATA)),
    "crc32c": CRC, "contentType": "text/plain",
}  # fmt: skip


class Alone(BaseHTTPRequestHandler):
    """Serve one object, whole or a range of it; the first request for data meets a `fault`."""

    fault = ""
    requests: list[str]

    def do_GET(self) -> None:
        """Answer one request and close the connection; meanwhile no other request is answered."""
        fault = ""
        if "alt=media" not in self.path:
            self._answer(200, json.dumps(VERSION).encode(), {"Content-Type": "application/json"})
            return
        self.requests.append(self.headers.get("Range", ""))
        if len(self.requests) == 1:
            fault = self.fault
        if fault == "refused":
            self._answer(503, DATA, {})
            return
        headers = {"x-goog-generation": "7", "x-goog-metageneration": "1", "x-goog-hash": f"crc32c={CRC}"}
        headers |= {"x-goog-stored-content-length": str(len(DATA)), "x-goog-stored-content-encoding": "identity"}
        if fault == "no checksum":
            del headers["x-goog-hash"]
        if fault == "another encoding":
            headers["Content-Encoding"] = "br"
        status, body = 200, DATA
        wanted = self.headers.get("Range", "").removeprefix("bytes=")
        if wanted:
            first, _, last = wanted.partition("-")
            end = int(last) + 1 if last else len(DATA)
            status, body = 206, DATA[int(first) : end]
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(DATA)}"
        if fault == "no end":
            self.protocol_version = "HTTP/1.1"
            headers["Transfer-Encoding"] = "chunked"
            self._answer(status, b"%x\r\n%s\r\n" % (len(body), body), headers)
            self.close_connection = True
            return
        self._answer(status, body, headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(body))}
        for name, value in {**headers, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the client has seen enough
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def served(fault: str) -> Generator[tuple[str, list[str]]]:
    """Serve, and yield the URL and the ranges that are requested."""
    requests: list[str] = []
    handler = type("Handler", (Alone,), {"fault": fault, "requests": requests})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("where", ["file", "stream", "slices"])
@pytest.mark.parametrize("fault", ["", "refused", "no checksum", "another encoding"])
async def test_the_next_request_is_answered(tmp_path: Path, where: str, fault: str) -> None:
    """The client closes each response before the next request, whatever it was."""
    stream, file = io.BytesIO(), tmp_path / "file"
    with served(fault) as (url, requests):
        async with asyncio.timeout(30):
            await fetched(url, stream if where == "stream" else file, slices=3 if where == "slices" else None)
    assert (stream.getvalue() if where == "stream" else file.read_bytes()) == DATA
    assert len(requests) == (3 if where == "slices" else 1) + bool(fault)


@pytest.mark.parametrize("where", ["file", "stream", "slices"])
async def test_a_response_that_lacks_only_its_end_is_complete(tmp_path: Path, where: str) -> None:
    """If the connection breaks after the last byte of the object, nothing is requested again."""
    stream, file = io.BytesIO(), tmp_path / "file"
    with served("no end") as (url, requests):
        async with asyncio.timeout(30):
            await fetched(url, stream if where == "stream" else file, slices=3 if where == "slices" else None)
    assert (stream.getvalue() if where == "stream" else file.read_bytes()) == DATA
    assert len(requests) == (3 if where == "slices" else 1)
