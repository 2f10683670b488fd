"""The library's own retries, turned on after a client was made: refused at once, or before the next command is sent."""

from collections.abc import Callable
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from forbear.clients.redis import Redis
from forbear.exchange.redis.settings import check_pool
from forbear_testkit.clients.redis.clusters import CLUSTERS, open_with
from forbear_testkit.clients.redis.flavours import Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import LOSE, once, proxy

REFUSED = "must not repeat anything, because the client's own retries repeat any command; use policy="


def retrying(flavour: Flavour, retries: int = 3) -> Any:
    """A `retry` object of a library that repeats commands."""
    retry = flavour.no_retry()
    retry._retries = retries
    return retry


def through_the_pool(session: Session, retry: Any) -> None:
    """Let the pool give it to its connections."""
    session.client.connection_pool.set_retry(retry)


def on_a_connection(session: Session, retry: Any) -> None:
    """Set it on each open connection."""

    async def change(client: Any) -> None:
        pool = client.connection_pool
        for connection in (*pool._available_connections, *pool._in_use_connections):
            connection.retry = retry

    def change_now(client: Any) -> None:
        with pytest.raises(StopIteration):
            change(client).send(None)

    session.run(change if hasattr(session.client, "aclose") else change_now)


def in_the_object(session: Session, retry: Any) -> None:
    """Change the object that a connection has already."""
    for connection in session.client.connection_pool._available_connections:
        connection.retry._retries = retry._retries


def _increment(pipe: Any) -> Any:
    return pipe.incr("k")


SENDING: dict[str, Callable[[Session], object]] = {
    "a command": lambda session: session("incr", "k"),
    "a blocking command": lambda session: session("blpop", ["k"], timeout=1),
    "a pipeline": lambda session: session.execute([("INCR", "k")], transaction=False),
    "a transaction": lambda session: session.execute([("INCR", "k")], transaction=True),
    "transaction()": lambda session: session("transaction", _increment, "k"),
    "a subscription": lambda session: session.run(lambda client: client.pubsub().subscribe("c")),
}


@pytest.mark.parametrize("change", [through_the_pool, on_a_connection, in_the_object], ids=lambda one: one.__name__)
@pytest.mark.parametrize("retries", [3, -1])
def test_a_pool_that_repeats_later_sends_nothing(
    flavour: Flavour, server: redis.Redis, path: str, change: Callable[[Session, Any], None], retries: int
) -> None:
    """A limited and an endless `retry` are found before a command of any kind is sent."""
    with flavour.session(lambda: flavour.ours(unix_socket_path=path)) as session:
        session("ping")
        change(session, retrying(flavour, retries))
        for name, send in SENDING.items():
            with pytest.raises(ValueError, match=REFUSED):
                send(session)
            assert server.exists("k") == 0, name
        change(session, flavour.no_retry())
        assert session("incr", "k") == 1


def test_set_retry_refuses_what_repeats(flavour: Flavour, path: str) -> None:
    """The client itself says so at once, and takes a `retry` that repeats nothing."""
    with proxy(path, once(INCRBY=LOSE)) as seen, flavour.connect(seen.port) as session:
        with pytest.raises(ValueError, match=REFUSED):
            session.client.set_retry(retrying(flavour))
        session.client.set_retry(flavour.no_retry())
        with pytest.raises(flavour.errors.ConnectionError):
            session("incr", "k")
    assert seen.executed.count("INCRBY") == 1


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """`set_retry` refuses; what is set past it is found before the next command and the next pipeline."""
    script = once(INCRBY=LOSE)
    with proxied(nodes, script, script) as (_, options), open_with(cluster, options) as session:
        client = session.client
        with pytest.raises(ValueError, match=REFUSED):
            client.set_retry(retrying(cluster))
        client.retry, before = retrying(cluster), getattr(client, "retry", None)
        with pytest.raises(ValueError, match=REFUSED):
            session("incr", HERE)
        if cluster.errors is redis:
            with pytest.raises(ValueError, match=REFUSED):
                client.pipeline(transaction=True)
        client.retry = before
        if hasattr(client, "cluster_error_retry_attempts"):
            client.cluster_error_retry_attempts = 3
            with pytest.raises(ValueError, match=r"`cluster_error_retry_attempts` must stay 0, .* got 3"):
                session("incr", HERE)
            client.cluster_error_retry_attempts = 0
        with pytest.raises(cluster.errors.ConnectionError):
            session("incr", HERE)
        assert session("get", HERE) == b"1"


def test_behind_a_sentinel(path: str) -> None:
    """The pool of a service is a pool like any other."""
    with proxy(path, once(INCRBY=LOSE)) as seen:

        class Known(Sentinel):
            """A Sentinel that knows where the primary is."""

            def discover_master(self, service_name: str) -> tuple[str, int]:
                return "127.0.0.1", seen.port

        make: Any = Known
        with make([]).master_for("main", redis_class=Redis) as client:
            client.ping()
            client.connection_pool.set_retry(Retry(NoBackoff(), 3))
            with pytest.raises(ValueError, match=REFUSED):
                client.incr("k")
    assert "INCRBY" not in seen.asked


@pytest.mark.parametrize("missing", ["socket_timeout", "socket_connect_timeout"])
def test_a_pool_without_a_timeout_waits_too_long(missing: str) -> None:
    """None, like no timeout at all, is longer than every attempt timeout."""
    options: dict[str, object] = {"socket_timeout": 1, "socket_connect_timeout": 1}
    check_pool(options, 2)
    with pytest.raises(
        ValueError, match=f"must have a {missing} of at most .* 2 s, got None; make it with {missing}=2"
    ):
        check_pool({**options, missing: None}, 2)
    with pytest.raises(ValueError, match=r"must have a socket_timeout of at most .* 2 s, got None"):
        check_pool({}, 2)
