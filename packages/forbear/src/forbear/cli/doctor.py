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
    module: str
    """The module to import, empty for a client that is not tried."""
    sends: str
    """The method or operation that `--check` sends."""


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
    """Send something that gets no response, a POST if it is HTTP, and return whether the error shows it.

    None for a client that is not tried, or that cannot be set up: it has sent nothing that an error could show.
    """
    send = _SENDERS.get(client.distribution)
    if send is None:
        return None
    with _losing_server() as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            send(url, _load(client.module))
        except Exception as error:
            if not server.was_reached:
                why = str(error).partition("\n")[0]
                tell(f"{client.distribution} was not tried, because it sent nothing: {type(error).__name__}: {why}")
                return None
            evidence = read(error)
            sent = () if evidence is None else evidence.requests
            return any(each.method == client.sends and each.unread is None and url in _show(each, url) for each in sent)
    return False


def _show(sent: Any, url: str) -> str:
    return str(sent.resource) if sent.protocol == "http" else url


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


_Send = Callable[[str, Any], object]


def _load(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _send_aiohttp(url: str, aiohttp: Any) -> None:
    import asyncio

    async def send() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as session:
            await session.post(url + _PATH)

    asyncio.run(send())


def _send_requests(url: str, library: Any) -> None:
    with library.Session() as session:
        session.trust_env = False
        session.post(url + _PATH, timeout=_TIMEOUT)


def _aws_options() -> dict[str, Any]:
    config = _load("botocore.config").Config(retries={"total_max_attempts": 1}, read_timeout=_TIMEOUT, proxies={})
    secrets = {"aws_access_key_id": "a", "aws_secret_access_key": "a"}
    return {"config": config, "region_name": "us-east-1", **secrets}


def _send_boto3(url: str, boto3: Any) -> None:
    boto3.client("sqs", endpoint_url=url, **_aws_options()).send_message(QueueUrl=f"{url}/1/q", MessageBody="a")


def _send_aiobotocore(url: str, library: Any) -> None:
    import asyncio

    async def send() -> None:
        session = library.get_session()
        async with session.create_client("sqs", endpoint_url=url, **_aws_options()) as client:
            await client.send_message(QueueUrl=f"{url}/1/q", MessageBody="a")

    asyncio.run(send())


def _send_redis(url: str, library: Any) -> None:
    name = library.__name__
    once: Any = {"retry": _load(f"{name}.retry").Retry(_load(f"{name}.backoff").NoBackoff(), 0), "protocol": 2}
    with getattr(library, name.capitalize()).from_url(f"redis{url[4:]}", socket_timeout=_TIMEOUT, **once) as client:
        client.execute_command("INCR", "a")


def _send_grpc(url: str, grpc: Any) -> None:
    with grpc.insecure_channel(url[7:], [("grpc.enable_http_proxy", 0)]) as channel:
        channel.unary_unary("/forbear.Doctor/Check")(b"", timeout=_TIMEOUT)


def _send_stripe(url: str, stripe: Any) -> None:
    kept = stripe.api_base
    stripe.api_base = url
    try:
        stripe.Customer.create(api_key="a")
    finally:
        stripe.api_base = kept


def _send_twilio(url: str, library: Any) -> None:
    client = library.Client("a", "a")
    client.api.base_url = url
    client.messages.create(to="a", body="a")


def _send_kubernetes(url: str, library: Any) -> None:
    configuration = library.Configuration(host=url)
    configuration.retries = False
    library.CoreV1Api(library.ApiClient(configuration)).create_namespace({})


def _send_pymongo(url: str, pymongo: Any) -> None:
    with pymongo.MongoClient(f"mongodb{url[4:]}", serverSelectionTimeoutMS=1000) as client:
        client.a.a.insert_one({})


def _send_pika(url: str, pika: Any) -> None:
    pika.BlockingConnection(pika.URLParameters(f"amqp{url[4:]}"))


def _send_kafka(url: str, kafka: Any) -> None:
    version: Any = {"api_version": (2, 0), "max_block_ms": 1000}
    producer = kafka.KafkaProducer(bootstrap_servers=url[7:], **version)
    try:
        producer.send("a", b"a")
    finally:
        producer.close(0)


_ONCE: dict[str, Any] = {"api_key": "a", "max_retries": 0, "timeout": _TIMEOUT}
_POST: dict[str, Any] = {"timeout": _TIMEOUT, "trust_env": False}

_SENDERS: dict[str, _Send] = {
    "httpx": lambda url, it: it.post(url + _PATH, **_POST),
    "httpx2": lambda url, it: it.post(url + _PATH, **_POST),
    "requests": _send_requests,
    "niquests": _send_requests,
    "urllib3": lambda url, it: it.PoolManager().request("POST", url + _PATH, timeout=_TIMEOUT, retries=False),
    "aiohttp": _send_aiohttp,
    "boto3": _send_boto3,
    "aiobotocore": _send_aiobotocore,
    "redis": _send_redis,
    "valkey": _send_redis,
    "grpcio": _send_grpc,
    "openai": lambda url, it: it.OpenAI(base_url=url, **_ONCE).embeddings.create(model="a", input="a"),
    "anthropic": lambda url, it: it.Anthropic(base_url=url, **_ONCE).messages.create(
        model="a", max_tokens=1, messages=[]
    ),
    "stripe": _send_stripe,
    "slack_sdk": lambda url, it: it.WebClient("a", base_url=f"{url}/", retry_handlers=[]).chat_postMessage(
        channel="a", text="a"
    ),
    "twilio": _send_twilio,
    "kubernetes": _send_kubernetes,
    "elasticsearch": lambda url, it: it.Elasticsearch(url, max_retries=0).index(index="a", document={}),
    "opensearch-py": lambda url, it: it.OpenSearch(url, max_retries=0).index(index="a", body={}),
    "pymongo": _send_pymongo,
    "kafka-python": _send_kafka,
    "pika": _send_pika,
}
"""The functions that send something to the address of this machine's server, by the client that they do it with."""
