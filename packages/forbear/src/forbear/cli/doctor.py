"""`forbear doctor`: the clients that are installed here, what they repeat by themselves, and what makes them safe."""

import csv
import json
import socketserver
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import click

from forbear.cli.kit.output import EXIT_CODES, columns, show_table, tell
from forbear.evidence.walk import read

_PATH = "/forbear-doctor"
_TIMEOUT = 10.0
"""The seconds after which a client that waits for the loopback server gives up; none should."""

_EPILOG = f"""{EXIT_CODES} With --check, 1 if a client's request is not found.

\b
Examples:
  forbear doctor
  forbear doctor --check
  forbear doctor --check --json httpx boto3"""


class InstalledClient(NamedTuple):
    """A row of doctor.csv, with the `version` that is installed."""

    distribution: str
    decorator: str
    """The answer "yes" if a decorated function sees its requests, else "no"; empty for other retry libraries."""
    repeats: str
    """The requests that it repeats by itself, empty for none."""
    cure: str
    version: str


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[CLIENT]...")
@click.option("--check", is_flag=True, help="Send a request through each to a server on loopback that loses it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(names: tuple[str, ...], check: bool, as_json: bool) -> None:
    """Say which clients repeat by themselves, and what makes them safe.

    Lists the clients that are installed beside forbear, or only those named. "seen" says whether a function that
    `forbear.retry` decorates knows what was sent, from the error.

    With --check, each client that can be used without an account sends one POST to a server on loopback, which closes
    the connection. The command says if the error still shows the request: a new version of a client may have changed.
    """
    clients = _find_clients(names)
    found = {each.distribution: _check(each.distribution) for each in clients if check}
    if as_json:
        rows = [each._asdict() | ({"found": found[each.distribution]} if check else {}) for each in clients]
        click.echo(json.dumps({"clients": rows}, indent=2))
    else:
        _print(clients, found if check else None)
    if False in found.values():
        sys.exit(1)


def _find_clients(names: tuple[str, ...]) -> list[InstalledClient]:
    """Return the clients that are installed, or only those named; BadParameter for a name that the table lacks."""
    with Path(__file__).with_name("doctor.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {row["distribution"].lower(): row["distribution"] for row in rows}
    for name in names:
        if name.lower() not in known:
            raise click.BadParameter(f"{name!r} must be one of {', '.join(known.values())}", param_hint="'CLIENT'")
    wanted = {name.lower() for name in names} or known.keys()
    clients = list[InstalledClient]()
    for row in rows:
        if row["distribution"].lower() in wanted:
            try:
                installed = version(row["distribution"])
            except PackageNotFoundError:
                continue
            clients.append(
                InstalledClient(row["distribution"], row["decorator"], row["repeats"], row["cure"], installed)
            )
    return clients


def _print(clients: list[InstalledClient], found: dict[str, bool | None] | None) -> None:
    if not clients:
        tell("no client that forbear knows is installed here")
        return
    from rich.markup import escape  # as late as the rest of rich

    headers = ["client", "repeats by itself", "seen", "what makes it safe"]
    table = columns(*headers[:3], *(["found"] if found is not None else []), headers[3])
    words = {True: "yes", False: "NO", None: "-"}
    for each in clients:
        cells = [f"{each.distribution} {each.version}", each.repeats or "nothing", each.decorator or "-"]
        if found is not None:
            cells.append(words[found[each.distribution]])
        table.add_row(*map(escape, (*cells, each.cure)))
    show_table(table)


def _check(distribution: str) -> bool | None:
    """Send a POST that gets no response, and return whether the error shows it.

    None for a client that is not tried, or that cannot be set up: it has sent nothing that an error could show.
    """
    send = _SENDERS.get(distribution)
    if send is None:
        return None
    method, resource = ("INCR", "") if distribution in ("redis", "valkey") else ("POST", _PATH)
    method = {"boto3": "sqs.SendMessage", "grpcio": "forbear.Doctor/Check"}.get(distribution, method)
    with _losing_server() as server:
        try:
            send(server.server_address[1])
        except Exception as error:
            if not server.was_reached:
                why = str(error).partition("\n")[0]
                tell(f"{distribution} was not tried, because it sent nothing: {type(error).__name__}: {why}")
                return None
            evidence = read(error)
            sent = () if evidence is None else evidence.requests
            return any(each.method == method and each.unread is None and resource in _show(each) for each in sent)
    return False


def _show(sent: Any) -> str:
    return str(sent.resource) if sent.protocol == "http" else _PATH


class _Lose(socketserver.BaseRequestHandler):
    """Read a part of a request, and close the connection; greetings of Redis clients are answered."""

    def handle(self) -> None:
        """Read until a request comes; the server closes the connection afterwards."""
        server: Any = self.server
        server.was_reached = True
        self.request.settimeout(_TIMEOUT)
        while (got := self.request.recv(65_536)).startswith(b"*") and b"INCR" not in got:
            self.request.sendall(b"+OK\r\n" * f"\n{got.decode('latin-1')}".count("\n*"))


class _LosingServer(socketserver.ThreadingTCPServer):
    """A server that loses each request; `was_reached` is True once a client has connected."""

    daemon_threads = True
    was_reached = False


@contextmanager
def _losing_server() -> Generator[_LosingServer]:
    """Serve on loopback within the block."""
    with _LosingServer(("127.0.0.1", 0), _Lose) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}{_PATH}"


def _send_httpx(port: int) -> None:
    import httpx

    httpx.post(_url(port), timeout=_TIMEOUT, trust_env=False)


def _send_httpx2(port: int) -> None:
    import httpx2

    httpx2.post(_url(port), timeout=_TIMEOUT, trust_env=False)


def _send_requests(port: int) -> None:
    import requests

    with requests.Session() as session:
        session.trust_env = False
        session.post(_url(port), timeout=_TIMEOUT)


def _send_niquests(port: int) -> None:
    from importlib import import_module

    niquests: Any = import_module("niquests")  # it replaces urllib3, so no environment of ours has it
    with niquests.Session() as session:
        session.trust_env = False
        session.post(_url(port), timeout=_TIMEOUT)


def _send_urllib3(port: int) -> None:
    import urllib3

    with urllib3.PoolManager() as pool:
        pool.request("POST", _url(port), timeout=_TIMEOUT, retries=False)


def _send_aiohttp(port: int) -> None:
    import asyncio

    import aiohttp

    async def send() -> None:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.post(_url(port)):
            pass

    asyncio.run(send())


def _send_boto3(port: int) -> None:
    import boto3
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1}, read_timeout=_TIMEOUT, proxies={})
    endpoint, secrets = f"http://127.0.0.1:{port}", {"aws_access_key_id": "a", "aws_secret_access_key": "a"}
    untyped: Any = boto3
    made = untyped.client("sqs", region_name="us-east-1", endpoint_url=endpoint, config=config, **secrets)
    made.send_message(QueueUrl=f"{endpoint}/1/q", MessageBody="a")


def _send_redis(port: int) -> None:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    once: Any = {"protocol": 2, "retry": Retry(NoBackoff(), 0)}
    with redis.Redis("127.0.0.1", port, socket_timeout=_TIMEOUT, **once) as client:
        untyped: Any = client
        untyped.execute_command("INCR", "a")


def _send_valkey(port: int) -> None:
    import valkey

    once: Any = {"protocol": 2}
    with valkey.Valkey("127.0.0.1", port, socket_timeout=_TIMEOUT, **once) as client:
        untyped: Any = client
        untyped.execute_command("INCR", "a")


def _send_grpc(port: int) -> None:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
        untyped: Any = channel
        untyped.unary_unary("/forbear.Doctor/Check")(b"", timeout=_TIMEOUT)


def _send_openai(port: int) -> None:
    import openai

    once: Any = {"base_url": _url(port), "api_key": "a", "max_retries": 0, "timeout": _TIMEOUT}
    openai.OpenAI(**once).embeddings.create(model="a", input="a")


def _send_anthropic(port: int) -> None:
    import anthropic

    once: Any = {"base_url": _url(port), "api_key": "a", "max_retries": 0, "timeout": _TIMEOUT}
    anthropic.Anthropic(**once).messages.create(model="a", max_tokens=1, messages=[])


_SENDERS: dict[str, Callable[[int], None]] = {
    "httpx": _send_httpx,
    "httpx2": _send_httpx2,
    "requests": _send_requests,
    "niquests": _send_niquests,
    "urllib3": _send_urllib3,
    "aiohttp": _send_aiohttp,
    "boto3": _send_boto3,
    "redis": _send_redis,
    "valkey": _send_valkey,
    "grpcio": _send_grpc,
    "openai": _send_openai,
    "anthropic": _send_anthropic,
}
"""The functions that send one request to a port of this machine, by client; each loads its client."""
