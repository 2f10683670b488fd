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
_SHOWN = ("distribution", "decorator", "repeats", "cure", "version")
_LONG, _SHORT = 10.0, 0.2
"""The seconds for which a client waits for the server on loopback, which closes the connection or only holds it."""
_PATIENT = frozenset({"stripe", "pymongo", "kafka-python", "pika"})
"""Those that take no timeout, or repeat after one."""

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
    module: str
    """The module to import, empty for a client that is not tried."""
    sends: str
    """The method or operation that `--check` sends."""


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[CLIENT]...")
@click.option("--check", is_flag=True, help="Send requests through each to a server on loopback that loses them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(names: tuple[str, ...], check: bool, as_json: bool) -> None:
    """Say which clients repeat by themselves, and what makes them safe.

    Lists the clients that are installed beside forbear, or only those named. "seen" says whether a function that
    `forbear.retry` decorates knows what was sent, from the error.

    With --check, each client that can be used without an account sends one POST to a server on loopback, which closes
    the connection, and one that it never answers. The command says if both errors still show the request: a new version
    of a client may have changed.
    """
    clients = _find_clients(names)
    found = {each.distribution: _check(each) for each in clients if check}
    if as_json:
        rows = [
            {name: getattr(each, name) for name in _SHOWN} | ({"found": found[each.distribution]} if check else {})
            for each in clients
        ]
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
            clients.append(InstalledClient(**row, version=installed))
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


def _check(client: InstalledClient) -> bool | None:
    """Return whether a client's errors show what it sent: after a connection that was closed, and after a timeout.

    None for a client that is not tried, or that cannot be set up: it has sent nothing that an error could show.
    """
    send = _SENDERS.get(client.distribution)
    if send is None:
        return None
    found = _is_found(client, send, _LONG)
    return found and (client.distribution in _PATIENT or _is_found(client, send, _SHORT))


def _is_found(client: InstalledClient, send: "_Send", seconds: float) -> bool | None:
    """Send something that gets no response, a POST if it is HTTP, and return whether the error shows it.

    With `_SHORT` seconds the server holds the connection, so that the client gives up.
    """
    with _losing_server(holds=seconds == _SHORT) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            send(url, _load(client.module), seconds)
        except Exception as error:
            if not server.was_reached:
                why = str(error).partition("\n")[0]
                tell(f"{client.distribution} was not tried, because it sent nothing: {type(error).__name__}: {why}")
                return None
            evidence = read(error)
            for sent in () if evidence is None else evidence.requests:
                is_seen = sent.protocol != "http" or url in str(sent.resource)
                if sent.method == client.sends and sent.unread is None and is_seen:
                    return True
        tell(
            f"{client.distribution} does not show its request after a {'timeout' if server.holds else 'lost response'}"
        )
    return False


class _Lose(socketserver.BaseRequestHandler):
    """Read a part of a request, and close the connection; greetings of Redis clients are answered."""

    def handle(self) -> None:
        """Read until a request comes; the server closes the connection afterwards."""
        server: Any = self.server
        server.was_reached = True
        self.request.settimeout(_LONG)
        while (got := self.request.recv(65_536)).startswith(b"*") and b"INCR" not in got:
            self.request.sendall(b"+OK\r\n" * f"\n{got.decode('latin-1')}".count("\n*"))
        if server.holds:
            server.ended.wait(_LONG)


class _LosingServer(socketserver.ThreadingTCPServer):
    """A server that loses each request or `holds` its connection; `was_reached` is True once a client has connected."""

    daemon_threads = True
    was_reached = holds = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lose)
        self.ended = threading.Event()


@contextmanager
def _losing_server(*, holds: bool) -> Generator[_LosingServer]:
    """Serve on loopback within the block."""
    with _LosingServer() as server:
        server.holds = holds
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


_Send = Callable[[str, Any, float], object]


def _load(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _send_aiohttp(url: str, aiohttp: Any, seconds: float) -> None:
    import asyncio

    async def send() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session:
            await session.post(url + _PATH)

    asyncio.run(send())


def _send_requests(url: str, library: Any, seconds: float) -> None:
    with library.Session() as session:
        session.trust_env = False
        session.post(url + _PATH, timeout=seconds)


def _aws_options(seconds: float) -> dict[str, Any]:
    config = _load("botocore.config").Config(retries={"total_max_attempts": 1}, read_timeout=seconds, proxies={})
    secrets = {"aws_access_key_id": "a", "aws_secret_access_key": "a"}
    return {"config": config, "region_name": "us-east-1", **secrets}


def _send_aiobotocore(url: str, library: Any, seconds: float) -> None:
    import asyncio

    async def send() -> None:
        session = library.get_session()
        async with session.create_client("sqs", endpoint_url=url, **_aws_options(seconds)) as client:
            await client.send_message(QueueUrl=f"{url}/1/q", MessageBody="a")

    asyncio.run(send())


def _send_redis(url: str, library: Any, seconds: float) -> None:
    name = library.__name__
    once: Any = {"retry": _load(f"{name}.retry").Retry(_load(f"{name}.backoff").NoBackoff(), 0), "protocol": 2}
    with getattr(library, name.capitalize()).from_url(f"redis{url[4:]}", socket_timeout=seconds, **once) as client:
        client.execute_command("INCR", "a")


def _send_grpc(url: str, grpc: Any, seconds: float) -> None:
    with grpc.insecure_channel(url[7:], [("grpc.enable_http_proxy", 0)]) as channel:
        channel.unary_unary("/forbear.Doctor/Check")(b"", timeout=seconds)


def _send_stripe(url: str, stripe: Any, seconds: float) -> None:
    kept = stripe.api_base
    stripe.api_base = url
    try:
        stripe.Customer.create(api_key="a")
    finally:
        stripe.api_base = kept


def _send_twilio(url: str, library: Any, seconds: float) -> None:
    client = library.Client("a", "a", http_client=_load("twilio.http.http_client").TwilioHttpClient(timeout=seconds))
    client.api.base_url = url
    client.messages.create(to="a", body="a")


def _send_kubernetes(url: str, library: Any, seconds: float) -> None:
    configuration = library.Configuration(host=url)
    configuration.retries = False
    library.CoreV1Api(library.ApiClient(configuration)).create_namespace({}, _request_timeout=seconds)


def _send_pymongo(url: str, pymongo: Any, _: float) -> None:
    with pymongo.MongoClient(f"mongodb{url[4:]}", serverSelectionTimeoutMS=1000) as client:
        client.a.a.insert_one({})


def _send_kafka(url: str, kafka: Any, seconds: float) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=url[7:], api_version=(2, 0), max_block_ms=1000)
    try:
        producer.send("a", b"a")
    finally:
        producer.close(0)


_ONCE: dict[str, Any] = {"api_key": "a", "max_retries": 0}
_POST: dict[str, Any] = {"trust_env": False}

_SENDERS: dict[str, _Send] = {
    "httpx": lambda url, it, seconds: it.post(url + _PATH, **_POST, timeout=seconds),
    "httpx2": lambda url, it, seconds: it.post(url + _PATH, **_POST, timeout=seconds),
    "requests": _send_requests,
    "niquests": _send_requests,
    "urllib3": lambda url, it, seconds: it.PoolManager().request("POST", url + _PATH, timeout=seconds, retries=False),
    "aiohttp": _send_aiohttp,
    "boto3": lambda url, it, seconds: it.client("sqs", endpoint_url=url, **_aws_options(seconds)).send_message(
        QueueUrl=f"{url}/1/q", MessageBody="a"
    ),
    "aiobotocore": _send_aiobotocore,
    "redis": _send_redis,
    "valkey": _send_redis,
    "grpcio": _send_grpc,
    "openai": lambda url, it, seconds: it.OpenAI(base_url=url, **_ONCE, timeout=seconds).embeddings.create(
        model="a", input="a"
    ),
    "anthropic": lambda url, it, seconds: it.Anthropic(base_url=url, **_ONCE, timeout=seconds).messages.create(
        model="a", max_tokens=1, messages=[]
    ),
    "stripe": _send_stripe,
    "slack_sdk": lambda url, it, seconds: it.WebClient(
        "a", base_url=f"{url}/", retry_handlers=[], timeout=seconds
    ).chat_postMessage(channel="a", text="a"),
    "twilio": _send_twilio,
    "kubernetes": _send_kubernetes,
    "elasticsearch": lambda url, it, seconds: it.Elasticsearch(url, max_retries=0, request_timeout=seconds).index(
        index="a", document={}
    ),
    "opensearch-py": lambda url, it, seconds: it.OpenSearch(url, max_retries=0, timeout=seconds).index(
        index="a", body={}
    ),
    "pymongo": _send_pymongo,
    "kafka-python": _send_kafka,
    "pika": lambda url, it, _: it.BlockingConnection(it.URLParameters(f"amqp{url[4:]}")),
}
"""The functions that send something to the address of this machine's server, by the client that they do it with."""
