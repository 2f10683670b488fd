"""Single commands through a proxy that breaks some of them: which are repeated, and which errors are raised."""

import socket
import threading
from typing import Any

import pytest
import redis

import forbear
from forbear.clients.redis import promised
from forbear.core.report import report
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.proxy import CUT, HANG, LOSE, in_turn, once, proxy

SAFE = [("SET", "k", "1"), ("GET", "k"), ("SADD", "s", "a"), ("HSET", "h", "f", "v"), ("DEL", "k")]
UNSAFE = [("INCRBY", "k", "1"), ("LPUSH", "l", "a"), ("APPEND", "k", "x"), ("SET", "k", "1", "NX"), ("LPOP", "l")]

NOT_EXECUTED = [
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-MASTERDOWN Link with MASTER is down\r\n",
    b"-CLUSTERDOWN The cluster is down\r\n",
    b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    b"-BUSY Valkey is busy running a script\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-ERR max number of clients reached\r\n",
]
FINAL = [
    b"-MOVED 1 127.0.0.1:7000\r\n",
    b"-ASK 1 127.0.0.1:7000\r\n",
    b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    b"-ERR unknown command\r\n",
    b"-NOAUTH Authentication required.\r\n",
    b"-NOPERM no permissions\r\n",
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
]


def reason(error: BaseException) -> forbear.events.Reason | None:
    """Return why forbear gave up, None if it had no part in the error."""
    result = report(error)
    return None if result is None else result.reason


def code(response: bytes) -> str:
    """Return the word that an error response begins with."""
    return response.decode().split()[0]


@pytest.mark.parametrize("command", SAFE, ids=lambda command: command[0])
def test_a_safe_command_is_repeated_after_a_lost_response(
    flavour: Flavour, path: str, command: tuple[str, ...]
) -> None:
    """Its response is lost three times, and the caller still gets it."""
    with proxy(path, in_turn(**{command[0]: [LOSE] * 3})) as seen, flavour.connect(seen.port) as session:
        session("execute_command", *command)
    assert seen.executed.count(command[0]) == 4


@pytest.mark.parametrize("command", UNSAFE, ids=" ".join)
def test_an_unsafe_command_is_executed_once(flavour: Flavour, path: str, command: tuple[str, ...]) -> None:
    """After a lost response the error is raised, and says why the command was not repeated."""
    with (
        proxy(path, once(**{command[0]: LOSE})) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session("execute_command", *command)
    assert seen.executed.count(command[0]) == 1
    assert reason(caught.value) is forbear.events.Reason.UNSAFE
    assert any(f"{command[0]} may have been executed" in note for note in caught.value.__notes__)


def test_a_lost_request_counts_as_executed(flavour: Flavour, path: str) -> None:
    """The client cannot tell a lost request from a lost response."""
    with proxy(path, once(INCRBY=CUT, GET=CUT)) as seen, flavour.connect(seen.port) as session:
        with pytest.raises(flavour.errors.ConnectionError):
            session("incr", "k")
        assert session("get", "k") is None
    assert seen.asked.count("INCRBY") == 1


def test_a_response_that_does_not_arrive(flavour: Flavour, path: str) -> None:
    """A timeout has the effect of a lost response."""
    with proxy(path, once(INCRBY=HANG, GET=HANG)) as seen, flavour.connect(seen.port, socket_timeout=0.1) as session:
        assert session("get", "k") is None
        with pytest.raises(flavour.errors.TimeoutError) as caught:
            session("incr", "k")
    assert reason(caught.value) is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("response", NOT_EXECUTED, ids=code)
def test_what_was_not_executed_is_repeated_whatever_it_is(flavour: Flavour, path: str, response: bytes) -> None:
    """The server says that it did not begin to execute the command."""
    with proxy(path, in_turn(INCRBY=[response, response])) as seen, flavour.connect(seen.port) as session:
        assert session("incr", "k") == 1
    assert seen.asked.count("INCRBY") == 3


@pytest.mark.parametrize("response", FINAL, ids=code)
def test_final_errors_are_raised_unchanged(flavour: Flavour, path: str, response: bytes) -> None:
    """Another attempt would fail in the same way, and a client of one server does not follow redirections."""
    with (
        proxy(path, once(GET=response)) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises((flavour.errors.ResponseError, flavour.errors.ConnectionError)) as caught,
    ):
        session("get", "k")
    assert seen.asked.count("GET") == 1
    assert report(caught.value) is None


def test_a_refused_connection_is_tried_again(flavour: Flavour, path: str) -> None:
    """Nothing was sent, so any command is repeated; the report lists all attempts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        flavour.connect(port, policy=AT_ONCE.with_attempts(3)) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session("incr", "k")
    result = report(caught.value)
    assert result is not None
    assert (result.reason, len(result.attempts)) == (forbear.events.Reason.ATTEMPTS, 3)


@pytest.mark.parametrize("fate", [CUT, LOSE, b"-LOADING Redis is loading the dataset in memory\r\n"], ids=str)
def test_a_connection_that_breaks_while_it_is_set_up(flavour: Flavour, path: str, fate: str) -> None:
    """The handshake is no part of the command, so any command may follow."""
    with proxy(path, in_turn(CLIENT=[fate] * 2)) as seen, flavour.connect(seen.port, client_name="me") as session:
        assert session("incr", "k") == 1
        assert session("client_getname") in ("me", b"me")
    assert seen.executed.count("INCRBY") == 1


def test_a_server_that_hangs_up(flavour: Flavour) -> None:
    """A connection that is accepted and closed, as load balancers do without a backend, is no execution."""
    with (
        listening(lambda connection: connection.shutdown(socket.SHUT_RDWR)) as port,
        flavour.connect(port, policy=AT_ONCE.with_attempts(4), client_name="me") as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session("incr", "k")
    assert reason(caught.value) is forbear.events.Reason.ATTEMPTS


def test_a_health_check_that_fails(flavour: Flavour, path: str) -> None:
    """It comes before the command, which is sent on another connection."""
    with proxy(path, once(PING=LOSE)) as seen, flavour.connect(seen.port, health_check_interval=0.05) as session:
        assert session("incr", "k") == 1
        threading.Event().wait(0.1)
        assert session("incr", "k") == 2
    assert seen.executed.count("INCRBY") == 2
    assert "PING" in seen.executed


def test_an_error_that_the_caller_is_handling_proves_nothing(flavour: Flavour, path: str) -> None:
    """Python notes it as the new error's context; an earlier refused connection proves nothing about this command."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with proxy(path, once(INCRBY=LOSE)) as seen, flavour.connect(seen.port) as session:
        try:
            with flavour.connect(port, policy=None) as nobody:
                nobody("incr", "k")
        except flavour.errors.ConnectionError:
            with pytest.raises(flavour.errors.ConnectionError):
                session("incr", "k")
    assert seen.executed.count("INCRBY") == 1


def test_another_connection_is_made_after_a_failover(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """A server that became a replica refuses writes for good; the next attempt goes over a new connection."""
    server.replicaof("127.0.0.1", 1)

    def promote(event: forbear.events.Event) -> None:
        if isinstance(event, forbear.events.Scheduled) and event.attempt == 3:
            server.replicaof("NO", "ONE")

    policy = AT_ONCE.with_on_event(promote)
    with proxy(path, once()) as seen, flavour.connect(seen.port, policy=policy) as session:
        assert session("incr", "k") == 1
        assert session.execute([("INCRBY", "k", 1)], transaction=True) == [2]
        server.replicaof("127.0.0.1", 1)
        assert session.execute([("INCRBY", "k", 1)], transaction=True) == [3]
    assert seen.connections == 1 + 2 + 2


def test_a_missing_script_is_loaded(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """A script is loaded where it is missing; it is repeated only where the caller vouches for it."""
    with (
        proxy(path, in_turn(EVALSHA=[b"-NOSCRIPT No matching script.\r\n", LOSE, LOSE])) as seen,
        flavour.connect(seen.port) as session,
    ):
        script = session.client.register_script("return redis.call('INCR', KEYS[1])")
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session.run(lambda client: script(keys=["k"]))
        with promised("idempotent"):
            session.run(lambda client: script(keys=["k"]))
    assert reason(caught.value) is forbear.events.Reason.UNSAFE
    assert server.get("k") == b"3"
    assert seen.asked.count("EVALSHA") == 4


def test_an_unknown_script_is_an_error(flavour: Flavour, path: str) -> None:
    """Only the caller has its text; asking again and again would not bring it."""
    with (
        proxy(path, once()) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.exceptions.NoScriptError),
    ):
        session("evalsha", "0" * 40, 0)
    assert seen.asked.count("EVALSHA") == 1


def test_an_error_that_an_earlier_attempt_explains(flavour: Flavour, path: str) -> None:
    """The group exists after all, probably since the attempt whose response was lost."""
    with (
        proxy(path, in_turn(XGROUP=[LOSE])) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ResponseError, match=r"BUSYGROUP|already exists") as caught,
    ):
        session("xgroup_create", "s", "g", mkstream=True)
    result = report(caught.value)
    assert result is not None
    assert result.maybe_done
    assert seen.executed.count("XGROUP") == 2


@pytest.mark.parametrize("off", ["policy", "switch"])
def test_without_a_policy_everything_is_sent_once(flavour: Flavour, path: str, off: str) -> None:
    """Neither forbear nor the library repeats anything."""
    options: dict[str, Any] = {"policy": None} if off == "policy" else {}
    with proxy(path, once(GET=LOSE)) as seen, flavour.connect(seen.port, **options) as session:
        switch = forbear.disabled() if off == "switch" else promised()
        with switch, pytest.raises(flavour.errors.ConnectionError) as caught:
            session("get", "k")
    assert seen.asked.count("GET") == 1
    assert report(caught.value) is None


def test_reading_from_now_on_is_not_repeated(flavour: Flavour, path: str) -> None:
    """A second XREAD with $ would begin later and miss the entry in the lost response; from an id it is read again."""
    with proxy(path, in_turn(XREAD=[LOSE, LOSE])) as seen, flavour.connect(seen.port) as session:
        session("xadd", "s", {"n": 1}, id="1-1")
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session("xread", {"s": "$"})
        assert reason(caught.value) is forbear.events.Reason.UNSAFE
        assert "XREAD may have been executed; it may be repeated only with explicit ids" in caught.value.__notes__[0]
        assert session("xread", {"s": "0"})
    assert seen.executed.count("XREAD") == 3
