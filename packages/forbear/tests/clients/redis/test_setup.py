"""Ways to make a client: by URL, over a socket, with a pool, with one connection, by Sentinel, over TLS."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import valkey
from redis.sentinel import Sentinel, SentinelConnectionPool

from forbear.clients import redis as for_redis
from forbear.clients import valkey as for_valkey
from forbear.core.report import report
from forbear.services.redis import policy as recommended
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.proxy import LOSE, in_turn, once, proxy
from forbear_testkit.clients.secure import untrusted


def test_by_url(flavour: Flavour, path: str) -> None:
    """`from_url` takes the options of the library, and a policy."""
    scheme = flavour.name.removesuffix("-async")
    with proxy(path, in_turn(GET=[LOSE, LOSE], SET=[LOSE])) as seen:
        url = f"{scheme}://127.0.0.1:{seen.port}/0"
        with flavour.session(lambda: flavour.ours.from_url(url, policy=AT_ONCE, decode_responses=True)) as session:
            assert session("set", "k", "v")
            assert session("get", "k") == "v"
        with flavour.session(lambda: flavour.ours.from_url(url, policy=None)) as session:
            assert session("get", "k") == b"v"
    assert seen.executed.count("GET") == 4


def test_over_a_unix_socket(flavour: Flavour, path: str) -> None:
    """The path goes to the library as it is."""
    with flavour.session(lambda: flavour.ours(unix_socket_path=path)) as session:
        assert session("incr", "k") == 1
    with flavour.session(lambda: flavour.ours.from_url(f"unix://{path}", single_connection_client=True)) as session:
        assert session("incr", "k") == 2


def test_with_a_pool(flavour: Flavour, path: str) -> None:
    """A pool that was made for several clients is used, and stays open."""
    with proxy(path, in_turn(GET=[LOSE, LOSE])) as seen, flavour.connect_stock(seen.port) as stock:
        kind = type(stock.client.connection_pool)
        pool = kind(host="127.0.0.1", port=seen.port)
        with flavour.session(lambda: flavour.ours(connection_pool=pool, policy=AT_ONCE)) as session:
            assert session("get", "k") is None
            session.run(lambda client: pool.disconnect())
        with flavour.session(lambda: flavour.ours.from_pool(kind(host="127.0.0.1", port=seen.port))) as session:
            assert session("incr", "k") == 1
            assert session.client.settings.policy == recommended
            session.run(lambda client: client.connection_pool.disconnect())


def test_with_one_connection(flavour: Flavour, path: str) -> None:
    """It is connected anew after a loss; `client()` makes one of the same policy."""
    with proxy(path, in_turn(GET=[LOSE], SET=[LOSE])) as seen:
        with flavour.connect(seen.port, single_connection_client=True) as session:
            assert session("get", "k") is None
            assert session("set", "k", 1)
            assert session("incr", "k") == 2
        with flavour.connect(seen.port) as session:
            one = session.client.client()
            assert one.settings.policy is AT_ONCE
            assert session.run(lambda client: one.incr("k")) == 3
            session.run(lambda client: one.aclose() if flavour.is_async else one.close())


def test_the_attempt_timeout_must_fit_the_pool(path: str) -> None:
    """A sync client cannot cut an attempt short, so the sockets have to."""
    policy = AT_ONCE.with_attempt_timeout(2)
    for ours, stock in ((for_redis.Redis, redis.ConnectionPool), (for_valkey.Valkey, valkey.ConnectionPool)):
        with pytest.raises(ValueError, match=r"`connection_pool` must have a socket_timeout of at most .* 2 s, got"):
            ours(connection_pool=stock(socket_timeout=9), policy=policy)
        with pytest.raises(ValueError, match="socket_connect_timeout of at most"):
            ours(connection_pool=stock(socket_timeout=1, socket_connect_timeout=9), policy=policy)
        client = ours(connection_pool=stock(socket_timeout=2, socket_connect_timeout=1), policy=policy)
        assert client.settings.policy is policy
        made = ours(policy=policy, socket_timeout=9)
        assert made.connection_pool.connection_kwargs["socket_timeout"] == 2
        made.close()


def test_by_sentinel(path: str) -> None:
    """`redis_class` is all that Sentinel needs; a primary that became a replica has executed nothing."""
    readonly = b"-READONLY You can't write against a read only replica.\r\n"
    with proxy(path, in_turn(INCRBY=[readonly, readonly])) as seen:

        class Known(Sentinel):
            """A Sentinel that knows where the primary is."""

            def discover_master(self, service_name: str) -> tuple[str, int]:
                return "127.0.0.1", seen.port

        make: Any = Known
        sentinel: Any = make([])
        make_pool: Any = SentinelConnectionPool
        with sentinel.master_for("main", redis_class=for_redis.Redis) as client:
            assert client.incr("k") == 1
        with for_redis.Redis.from_pool(make_pool("main", sentinel), policy=AT_ONCE) as client:
            assert client.incr("k") == 2
    assert seen.executed.count("INCRBY") == 2


def test_a_certificate_that_nobody_trusts(flavour: Flavour, tmp_path: Path) -> None:
    """Another attempt does not change it."""
    with untrusted(tmp_path / "pem") as (url, handshakes):
        port = int(url.rpartition(":")[2])
        with flavour.connect(port, ssl=True) as session, pytest.raises(flavour.errors.ConnectionError) as caught:
            session("get", "k")
    assert len(handshakes) == 1
    assert report(caught.value) is None


def test_a_tls_handshake_that_breaks(flavour: Flavour) -> None:
    """Nothing was sent yet."""
    with (
        listening(lambda connection: connection.shutdown(socket.SHUT_RDWR)) as port,
        flavour.connect(port, ssl=True, policy=AT_ONCE.with_attempts(3)) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session("incr", "k")
    result = report(caught.value)
    assert result is not None
    assert len(result.attempts) == 3


def test_a_missing_library_says_how_to_install_it() -> None:
    """The error names the extra."""
    for library in ("redis", "valkey"):
        script = f"import sys; sys.modules[{library!r}] = None\nimport forbear.clients.{library}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert f'install it with: pip install "forbear[{library}]"' in done.stderr


def test_an_unknown_promise_is_refused() -> None:
    """The error lists those that there are."""
    with pytest.raises(ValueError, match=r'must be of these: "cycle" .*"idempotent".*; got .sure.'):
        for_redis.promised("sure")  # type: ignore[arg-type]


def test_monitor_and_locks_work(path: str) -> None:
    """Features that the library builds on its own commands work through our client."""
    with proxy(path, once()) as seen, for_redis.Redis(port=seen.port) as client:
        with client.lock("l", timeout=5):
            assert client.exists("l") == 1
        assert client.exists("l") == 0
    with for_redis.Redis(unix_socket_path=path) as client, client.monitor() as monitor:
        client.get("watched")
        seen_there: Any = monitor
        while (command := seen_there.next_command()["command"]) != "GET watched":
            assert command.startswith(("HELLO", "CLIENT"))  # the connection is new
