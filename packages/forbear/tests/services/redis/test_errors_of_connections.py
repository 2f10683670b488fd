"""Verdicts on real failures of the real clients: no connection, a lost response, a server in trouble."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.exceptions
import redis.sentinel
import valkey
import valkey.asyncio
import valkey.exceptions
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.services.redis import is_conflict, needs_reconnect, response_of, verdict_of_exception
from forbear.testing.valkey import valkey_server
from forbear_testkit.services.redis.server import Live

# As objects of any type: the annotations of the libraries are not what is tested.
_REDIS: Any = redis
_VALKEY: Any = valkey

# As asyncio says it of a name with two addresses.
_REFUSED_TWICE = (
    "Error Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), "
    "[Errno 111] Connect call failed ('127.0.0.1', 1) connecting to localhost:1."
)

sync = pytest.mark.parametrize("library", ["redis", "valkey"])


def _client(library: str, **settings: Any) -> Any:
    """A client that does not retry by itself, which would hide the first error behind the last."""
    if library == "redis":
        return redis.Redis(protocol=2, retry=Retry(NoBackoff(), 0), **settings)
    return valkey.Valkey(**settings)


def _error(client: Any, *command: object) -> Exception:
    with client, pytest.raises(Exception) as caught:  # noqa: PT011 - any error is what is asked for
        client.execute_command(*(command or ("INCR", "k")))
    return caught.value


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port on which connections are taken, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def curt_port() -> Iterator[int]:
    """A port on which the first request is read and the connection closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@sync
def test_without_a_connection_nothing_was_executed(library: str, closed_port: int, mute_port: int) -> None:
    """Nobody listens, nobody is there, no such name, no TLS."""
    for settings in (
        {"port": closed_port},
        {"unix_socket_path": "/nonexistent/socket"},
        {"host": "nowhere.invalid"},
        {"port": mute_port, "ssl": True, "socket_timeout": 0.05, "socket_connect_timeout": 0.05},
    ):
        assert verdict_of_exception(_error(_client(library, **settings))) == NOT_EXECUTED


@sync
async def test_without_a_connection_nothing_was_executed_async(library: str, closed_port: int) -> None:
    """The asyncio clients say the same."""
    client: Any = valkey.asyncio.Valkey(host="127.0.0.1", port=closed_port)
    if library == "redis":
        client = redis.asyncio.Redis(host="127.0.0.1", port=closed_port, retry=AsyncRetry(NoBackoff(), 0))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any error is what is asked for
        await client.execute_command("INCR", "k")
    await client.aclose()
    assert verdict_of_exception(caught.value) == NOT_EXECUTED


@sync
def test_a_failed_handshake_is_no_connection(library: str, curt_port: int) -> None:
    """The server hangs up instead of speaking TLS."""
    assert verdict_of_exception(_error(_client(library, port=curt_port, ssl=True))) == NOT_EXECUTED


@sync
def test_after_sending_the_outcome_is_unknown(library: str, curt_port: int) -> None:
    """The connection is closed instead of an answer."""
    error = _error(_client(library, port=curt_port))
    assert "closed" in str(error) or "reset" in str(error)
    assert verdict_of_exception(error) == TRANSIENT


@sync
def test_without_an_answer_the_outcome_is_unknown(library: str, mute_port: int) -> None:
    """The answer does not come in time."""
    error = _error(_client(library, port=mute_port, socket_timeout=0.05))
    assert "reading" in str(error)
    assert verdict_of_exception(error) == TRANSIENT


def test_a_pool_without_a_free_connection_sent_nothing(socket_path: str) -> None:
    """Neither the pool that refuses nor the one that waits."""
    path = {"path": socket_path, "max_connections": 1}
    for library, kind, more in (
        (_REDIS, "ConnectionPool", {}),
        (_REDIS, "BlockingConnectionPool", {"timeout": 0.01}),
        (_VALKEY, "BlockingConnectionPool", {"timeout": 0.01}),
    ):
        pool = getattr(library, kind)(connection_class=library.UnixDomainSocketConnection, **path, **more)
        asked = ["PING"] if library is _VALKEY else []
        taken = pool.get_connection(*asked)
        with pytest.raises((redis.ConnectionError, valkey.ConnectionError)) as caught:
            pool.get_connection(*asked)
        assert verdict_of_exception(caught.value) == NOT_EXECUTED
        pool.release(taken)
        pool.disconnect()


@sync
def test_a_changed_key_is_a_conflict_and_a_lost_connection_is_not(library: str, socket_path: str, live: Live) -> None:
    """Both come as a WatchError; only one says that nothing was executed."""
    client = _client(library, unix_socket_path=socket_path)
    with client, client.pipeline() as pipe:
        errors = []
        for interfere in (["SET", "k", "other"], ["CLIENT", "KILL", "TYPE", "normal"]):
            pipe.watch("k")
            pipe.multi()
            pipe.set("k", "mine")
            live(*interfere)
            with pytest.raises((redis.WatchError, valkey.WatchError)) as caught:
                pipe.execute()
            errors.append(caught.value)
            pipe.reset()
    assert list(map(verdict_of_exception, errors)) == [CONFLICT, TRANSIENT]
    assert list(map(is_conflict, errors)) == [True, False]


@sync
@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "transaction"])
def test_a_refused_command_does_not_speak_for_its_pipeline(
    library: str, transaction: bool, socket_path: str, live: Live
) -> None:
    """One command was not executed, another one was: the pipeline as a whole must not be sent again blindly."""
    client = _client(library, unix_socket_path=socket_path)
    assert verdict_of_exception(_error(client, "EVALSHA", "0" * 40, 0)) == NOT_EXECUTED
    with client, client.pipeline(transaction=transaction) as pipe:
        pipe.incr("counter")
        pipe.execute_command("EVALSHA", "0" * 40, 0)
        with pytest.raises((redis.ResponseError, valkey.ResponseError)) as caught:
            pipe.execute()
    assert live("GET", "counter") == b"1"
    assert (response_of(caught.value) or "").startswith("NOSCRIPT ")
    assert verdict_of_exception(caught.value) == TRANSIENT


def _config(*settings: str) -> list[str]:
    return ["CONFIG", "SET", *settings]


_TROUBLES: list[tuple[list[str], list[str], list[str], Verdict]] = [
    (["SET", "k", "v"], ["LPUSH", "k", "v"], [], PERMANENT),
    (["PING"], ["UNHEARD"], [], PERMANENT),
    (_config("min-replicas-to-write", "1"), ["INCR", "n"], _config("min-replicas-to-write", "0"), NOT_EXECUTED),
    (_config("maxmemory", "1"), ["INCR", "n"], _config("maxmemory", "0"), PERMANENT),
    (["REPLICAOF", "127.0.0.1", "1"], ["INCR", "n"], ["REPLICAOF", "NO", "ONE"], NOT_EXECUTED),
]


@sync
def test_responses_of_a_server_in_trouble(library: str) -> None:
    """Wrong type, unknown command, too few replicas, no memory, demoted to a replica: and nothing was executed."""
    with valkey_server() as path:
        operator = Live(path)
        for trouble, command, cure, verdict in _TROUBLES:
            operator(*trouble)
            error = _error(_client(library, unix_socket_path=path), *command)
            assert verdict_of_exception(error) == verdict, error
            assert needs_reconnect(response_of(error) or "") is (trouble[0] == "REPLICAOF")
            if cure:
                operator(*cure)
        assert operator("EXISTS", "n") == 0
        operator.close()


@sync
def test_a_server_that_is_busy_full_or_without_its_primary(library: str) -> None:
    """A script that runs, a replica without its primary, no place for another client."""
    with valkey_server() as path:
        operator, other = Live(path), Live(path)
        operator.run([_config("busy-reply-threshold", "1"), _config("replica-serve-stale-data", "no")])
        client = _client(library, unix_socket_path=path)
        client.ping()
        other.send("EVAL", "while true do end", 0)
        while "BUSY" not in str(operator("PING")):
            pass
        with pytest.raises((redis.ResponseError, valkey.ResponseError)) as busy:
            client.incr("n")
        operator("SCRIPT", "KILL")
        other.receive(1)
        operator("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises((redis.ResponseError, valkey.ResponseError)) as alone:
            client.get("n")
        operator.run([["REPLICAOF", "NO", "ONE"], _config("maxclients", "1")])
        # Where the server closes before the command is written or read, its response is lost.
        refused = (_error(_client(library, unix_socket_path=path)) for _ in range(1000))
        full = next(error for error in refused if "max number of clients" in str(error))
        client.close()
        operator.close()
        other.close()
    assert [str(response_of(caught.value)).split()[0] for caught in (busy, alone)] == ["BUSY", "MASTERDOWN"]
    assert verdict_of_exception(busy.value) == verdict_of_exception(alone.value) == NOT_EXECUTED
    assert verdict_of_exception(full).kind is NOT_EXECUTED.kind
    assert verdict_of_exception(full).throttled


@sync
def test_a_cluster_that_does_not_serve_a_slot(library: str) -> None:
    """The command was refused before it was looked at."""
    with valkey_server(**{"cluster-enabled": "yes"}) as path:
        error = _error(_client(library, unix_socket_path=path))
    assert (response_of(error) or "").startswith("CLUSTERDOWN ")
    assert verdict_of_exception(error) == NOT_EXECUTED


def test_a_cluster_that_cannot_be_reached(closed_port: int) -> None:
    """Worth another try, but what was lost before is not known."""
    with pytest.raises(redis.RedisClusterException) as caught:
        redis.RedisCluster(host="127.0.0.1", port=closed_port)
    assert verdict_of_exception(caught.value) == TRANSIENT


def test_a_sentinel_that_knows_no_primary(closed_port: int) -> None:
    """There is nobody to send it to."""
    sentinel = _REDIS.sentinel.Sentinel([("127.0.0.1", closed_port)], sentinel_kwargs={"retry": Retry(NoBackoff(), 0)})
    with pytest.raises(redis.sentinel.MasterNotFoundError) as caught:
        sentinel.discover_master("primary")
    assert verdict_of_exception(caught.value) == NOT_EXECUTED


class _Own(redis.ConnectionError):
    """An error of an application, built on one of the library."""


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (redis.AuthenticationError("invalid username-password pair"), PERMANENT),
        (redis.exceptions.AuthorizationError("no"), PERMANENT),
        (redis.exceptions.SlotNotCoveredError("Slot 1 is not covered"), NOT_EXECUTED),
        (redis.exceptions.ClusterError("TTL exhausted."), NOT_EXECUTED),
        (redis.exceptions.ExternalAuthProviderError("problem with LDAP service"), NOT_EXECUTED),
        (redis.exceptions.MaxConnectionsError("Too many connections"), NOT_EXECUTED),
        (valkey.exceptions.MaxConnectionsError("Too many connections"), NOT_EXECUTED),
        (redis.InvalidResponse("Protocol Error: b'x'"), TRANSIENT),
        (redis.WatchError("an application's own"), TRANSIENT),
        (redis.WatchError("Slot rebalancing occurred while watching keys"), CONFLICT),
        (redis.DataError("Invalid input of type: 'dict'."), PERMANENT),
        (redis.PubSubError("no"), PERMANENT),
        (redis.exceptions.LockNotOwnedError("no"), PERMANENT),
        (redis.RedisClusterException("Cannot issue a WATCH"), PERMANENT),
        (_Own("Connection closed by server."), TRANSIENT),
        (ConnectionRefusedError(111, "Connection refused"), NOT_EXECUTED),
        (socket.gaierror(-2, "Name or service not known"), NOT_EXECUTED),
        (ConnectionResetError(104, "Connection reset by peer"), TRANSIENT),
        (TimeoutError("timed out"), TRANSIENT),
        (ValueError("LOADING"), PERMANENT),
        (type("ReadOnlyError", (Exception,), {})("a namesake"), PERMANENT),
        (KeyboardInterrupt(), PERMANENT),
    ],
    ids=repr,
)
def test_errors_by_their_class(error: BaseException, verdict: Verdict) -> None:
    """Classes count by their library and name, subclasses as what they are built on."""
    assert verdict_of_exception(error) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Error connecting to localhost:6379.", NOT_EXECUTED),
        ("Error 111 connecting to localhost:6379. Connection refused.", NOT_EXECUTED),
        (_REFUSED_TWICE, NOT_EXECUTED),
        ("Error 104 while writing to socket. connecting to x.", TRANSIENT),
        ("Error while reading from a connecting to b:1", TRANSIENT),
        ("Connection lost. Error 111 connecting to localhost:6379.", TRANSIENT),
    ],
)
def test_only_the_libraries_own_words_say_that_nothing_was_connected(text: str, verdict: Verdict) -> None:
    """An error that merely contains such words may be about a command that was sent."""
    assert verdict_of_exception(redis.exceptions.ConnectionError(text)) == verdict
    assert verdict_of_exception(valkey.exceptions.ConnectionError(text)) == verdict


@pytest.mark.parametrize("code", ["BUSY", "NOREPLICAS", "LOADING"])
def test_a_refusal_as_asyncio_clients_quote_it(code: str) -> None:
    """They put the arguments of the error into its text, instead of the text."""
    quoted = (f"{code} not now",)
    error = redis.ResponseError(f"Command # 1 (SET k v) of pipeline caused error: {quoted}")
    reply = response_of(error)
    assert reply is not None
    assert reply.startswith(f"{code} not now")
