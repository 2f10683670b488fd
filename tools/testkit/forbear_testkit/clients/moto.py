"""moto's server, which keeps the state of AWS, in a process of its own, and a proxy before it that fails as told."""

import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Answer
from forbear_testkit.lazily import Library

botocore: Any = Library("botocore")
exceptions: Any = Library("botocore.exceptions")
parsers: Any = Library("botocore.parsers")
jmespath: Any = Library("jmespath")

_SERVE = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
_CONFIG = {"lambda": {"use_docker": False}, "batch": {"use_docker": False}}
_RESET = struct.pack("ii", 1, 0)
_VOLATILE = re.compile(r"ResponseMetadata|.*(?:date|time|modified|created|updated|expir|lastused).*", re.IGNORECASE)
"""The members of answers that differ from run to run, or that say when something was done."""


class Fault(NamedTuple):
    """A failure of the next request: whether it is executed, and what is sent instead of moto's answer.

    Without an `answer` moto's own is cut off, if it has a body.
    """

    is_executed: bool
    answer: Answer | None = None


LOST = Fault(True, aws.LOST)
CUT = Fault(True)


class Executed(NamedTuple):
    """A request that moto has executed, and the body of its answer."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    answer: bytes


class Moto(ThreadingHTTPServer):
    """The proxy. `faults` are for the next requests, `executed` those that moto has seen since the last `reset`."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.faults: list[Fault | None] = []
        self.executed: list[Executed] = []
        self._port = port
        self.lock = threading.Lock()

    def reset(self) -> None:
        """Empty moto."""
        self.send("POST", "/moto-api/reset")
        self.faults.clear()
        self.executed.clear()

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Any:
        """Send a request to moto, and return its response and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Moto  # pyright: ignore[reportIncompatibleVariableOverride]

    def handle_one_request(self) -> None:
        """Pass one request on, or fail as the next fault says."""
        self.close_connection = True
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            return
        self.close_connection = True  # one request for each connection: so no client repeats it by itself
        body = b"".join(self._read())
        with self.server.lock:
            fault = self.server.faults.pop(0) if self.server.faults else None
        head, content = b"", b""
        if fault is None or fault.is_executed:
            head, content = self._execute(body)
        if fault is None:
            self.wfile.write(head + content)
        elif fault.answer is None:
            self.wfile.write(head + content[: len(content) // 2])
        else:
            self.wfile.write(fault.answer.data)
            if fault.answer.end == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self.connection.close()

    def _execute(self, body: bytes) -> tuple[bytes, bytes]:
        dropped = ("expect", "connection", "transfer-encoding")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        response, content = self.server.send(self.command, self.path, body, headers)
        with self.server.lock:
            self.server.executed.append(Executed(self.command, self.path, dict(self.headers), body, content))
        lines = [f"HTTP/1.1 {response.status} {response.reason}", "Connection: close"]
        given = {name.lower(): value for name, value in response.getheaders()}
        if self.command != "HEAD":
            given["content-length"] = str(len(content))
        lines += [f"{name}: {value}" for name, value in given.items() if name not in dropped]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), content

    def _read(self) -> Iterator[bytes]:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def log_message(self, format: str, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def serving() -> Generator[Moto]:
    """Run moto's server and the proxy."""
    env = {**os.environ, "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}  # thousands, after every reset
    pipe, none = subprocess.PIPE, subprocess.DEVNULL  # the log has a line for each request
    with subprocess.Popen([sys.executable, "-c", _SERVE], stdin=pipe, stdout=pipe, stderr=none, env=env) as process:
        assert process.stdout is not None
        with Moto(int(process.stdout.readline())) as moto:
            response, _ = moto.send("POST", "/moto-api/config", json.dumps(_CONFIG).encode())
            assert response.status in (200, 201)
            thread = threading.Thread(target=moto.serve_forever)
            thread.start()
            try:
                yield moto
            finally:
                moto.shutdown()
                thread.join()
                process.terminate()


class Step(NamedTuple):
    """A call of the world: its service and operation, its parameters, and the parts of its answer to keep."""

    service: str
    operation: str
    parameters: dict[str, Any]
    kept: dict[str, str]


class World(NamedTuple):
    """The calls that make the state in which a call runs, and those that show the state."""

    make: list[Step]
    looks: list[Step]


@cache
def worlds() -> dict[str, World]:
    """Return the world of each service, as aws_moto.toml has it."""
    text = (Path(__file__).parents[1] / "services/aws_moto.toml").read_text(encoding="utf-8")
    return {
        service: World(*([_parse(service, line) for line in each[key]] for key in ("make", "looks")))
        for service, each in tomllib.loads(text).items()
    }


def _parse(service: str, line: str) -> Step:
    call, _, kept = line.partition(" -> ")
    name, _, parameters = call.partition(" ")
    named, _, operation = name.rpartition(".")
    return Step(named or service, operation, json.loads(parameters), dict(each.split("=", 1) for each in kept.split()))


class Account:
    """The side of a test: clients of boto3 through the proxy, and the parts of answers that were kept."""

    def __init__(self, moto: Moto) -> None:
        self.moto = moto
        self.kept: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return a client that makes one attempt."""
        if service not in self._clients:
            self._clients[service] = aws.client(service, self.moto.url, attempts=1, inject_host_prefix=False)
        return self._clients[service]

    def make(self, world: World) -> None:
        """Empty moto, and make a world."""
        self.moto.reset()
        self.kept.clear()
        self.kept["now"] = int(time.time() * 1000)
        for step in world.make:
            answer = self.call(self.client(step.service), step)
            self.kept.update({name: jmespath.search(path, answer) for name, path in step.kept.items()})

    def look(self, world: World) -> list[Any]:
        """Return what the calls of a world show, without times."""
        return [show(*self.try_call(self.client(step.service), step)) for step in world.looks]

    def call(self, client: Any, step: Step) -> dict[str, Any]:
        """Make a call."""
        answer: dict[str, Any] = getattr(client, botocore.xform_name(step.operation))(**self._fill(step.parameters))
        try:
            return {name: value.read() if hasattr(value, "read") else value for name, value in answer.items()}
        finally:
            aws.drop(answer)

    def try_call(self, client: Any, step: Step) -> tuple[dict[str, Any], Exception | None]:
        """Make a call that may fail, and return its answer and its error."""
        try:
            return self.call(client, step), None
        except (exceptions.BotoCoreError, exceptions.ClientError, parsers.ResponseParserError) as error:
            return {}, error

    def _fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._fill(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._fill(each) for each in value]
        if not isinstance(value, str):
            return value
        if value[1:] in self.kept and value.startswith("$"):
            return self.kept[value[1:]]
        return re.sub(r"\$(\w+)", lambda found: str(self.kept.get(found[1], found[0])), value)


def show(value: Any, error: Exception | None = None) -> Any:
    """Return an answer without its times, or the code of an error."""
    if error is not None:
        return getattr(error, "response", {}).get("Error", {}).get("Code", type(error).__name__)
    if isinstance(value, dict):
        return {name: show(each) for name, each in value.items() if not _VOLATILE.fullmatch(name)}
    if isinstance(value, list):
        return [show(each) for each in value]
    return value if isinstance(value, str | int | float | bool | bytes | None) else repr(type(value))


def busy(operation: Any) -> Fault:
    """Return the fault of an operation that was executed, but answers 503."""
    return Fault(True, aws.fail(operation, 503, "ServiceUnavailable"))
