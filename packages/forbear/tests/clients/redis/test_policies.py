"""Policies, budgets, events, reports and timeouts work on commands as everywhere."""

import socket
from typing import Any

import pytest
import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

import forbear
from forbear.clients.redis import Redis
from forbear.core.report import report
from forbear.services import cloud_storage
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, wait_patiently
from forbear_testkit.clients.redis.proxy import HANG, LOSE, in_turn, once, proxy


def test_a_policy_of_ones_own_keeps_the_table(flavour: Flavour, path: str) -> None:
    """The policy decides which errors are retried; the table decides for which commands."""
    policy = forbear.retry(on=flavour.errors.ConnectionError, attempts=3, backoff=forbear.Constant(0))
    with (
        proxy(path, in_turn(GET=[LOSE], INCRBY=[LOSE], CLIENT=[LOSE])) as seen,
        flavour.connect(seen.port, policy=policy, client_name="me") as session,
    ):
        assert session("get", "k") is None
        with pytest.raises(flavour.errors.ConnectionError):
            session("incr", "k")
    for careful in (policy.with_repeatable(False), AT_ONCE.with_repeatable(False)):
        with (
            proxy(path, in_turn(GET=[LOSE], CLIENT=[LOSE])) as seen,
            flavour.connect(seen.port, policy=careful, client_name="me") as session,
            pytest.raises(flavour.errors.ConnectionError) as caught,
        ):
            session("get", "k")
        assert seen.executed.count("GET") == 1
        assert caught.value.__notes__[0].endswith("policy then forbids a repeat (repeatable=False) [unsafe]")


def test_a_policy_for_other_errors_lets_these_out(flavour: Flavour, path: str) -> None:
    """An error that the policy does not name is final."""
    policy = forbear.retry(on=flavour.errors.ResponseError)
    with (
        proxy(path, once(GET=LOSE)) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        session("get", "k")
    assert seen.executed.count("GET") == 1


def test_results_are_judged(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """`on_result` repeats the command until the value is there."""

    def appear(event: forbear.events.Event) -> None:
        if isinstance(event, forbear.events.Scheduled):
            server.set("k", "v")

    policy = AT_ONCE.with_on_result(lambda value: value is None).with_on_event(appear)
    with proxy(path, once()) as seen, flavour.connect(seen.port, policy=policy) as session:
        assert session("get", "k") == b"v"
        assert session("lpop", "nothing") is None
    assert seen.executed.count("GET") == 2
    assert seen.executed.count("LPOP") == 1


def test_events_and_budget(flavour: Flavour, path: str) -> None:
    """The listener hears of every failure, wait and end, and each retry costs a token."""
    events: list[forbear.events.Event] = []
    budget = forbear.budgets.Budget(forbear.budgets.TokenBucket(capacity=3, deposit=0))
    policy = AT_ONCE.with_on_event(events.append).with_budget(budget)
    with (
        proxy(path, in_turn(GET=[LOSE, LOSE, LOSE, LOSE])) as seen,
        flavour.connect(seen.port, policy=policy) as session,
    ):
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session("get", "k")
        assert session("get", "k") is None
    result = report(caught.value)
    assert result is not None
    assert (result.operation, result.reason, len(result.attempts)) == ("GET", forbear.events.Reason.BUDGET, 4)
    assert [type(event).__name__ for event in events] == ["Failed", "Scheduled"] * 3 + ["Failed", "GaveUp"]
    assert caught.value.__notes__ == [result.note]


def test_a_recovery_is_told(flavour: Flavour, path: str) -> None:
    """The listener learns that it went well in the end."""
    events: list[forbear.events.Event] = []
    with (
        proxy(path, once(GET=LOSE)) as seen,
        flavour.connect(seen.port, policy=AT_ONCE.with_on_event(events.append)) as session,
    ):
        session("get", "k")
    assert isinstance(events[-1], forbear.events.Recovered)
    assert events[-1].attempt == 2


def test_the_time_of_an_attempt_is_limited(flavour: Flavour, path: str) -> None:
    """Reads are repeated after the attempt timeout; the timeout of another command is raised."""
    policy = AT_ONCE.with_attempt_timeout(0.2)
    with proxy(path, once(GET=HANG, INCRBY=HANG)) as seen, flavour.connect(seen.port, policy=policy) as session:
        assert session("get", "k") is None
        with pytest.raises((flavour.errors.TimeoutError, forbear.AttemptTimeout)) as caught:
            session("incr", "k")
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


def test_an_attempt_that_is_cut_short_while_it_connects(flavour: Flavour, path: str) -> None:
    """Nothing was sent then, so any command may follow."""
    policy = AT_ONCE.with_attempt_timeout(0.2)
    with (
        proxy(path, once(CLIENT=HANG)) as seen,
        flavour.connect(seen.port, policy=policy, client_name="me") as session,
    ):
        assert session("incr", "k") == 1


def test_blocking_commands_take_their_time(flavour: Flavour, path: str) -> None:
    """Neither the attempt timeout nor that of the socket ends what the server was asked to block."""

    def block(limit: float) -> None:
        policy, longer = AT_ONCE.with_attempt_timeout(limit), limit + 0.05
        with proxy(path, once()) as seen, flavour.connect(seen.port, policy=policy, socket_timeout=limit) as session:
            assert session("blpop", ["l"], timeout=longer) is None
            assert session("xread", {"s": "$"}, block=round(longer * 1000)) in (None, [], {})
            assert session("get", "k") is None
        assert seen.connections == 1

    wait_patiently(block)


def test_blocking_commands_take_their_time_with_client_side_caching(
    server: redis.Redis, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection behind the cache reads with the longer timeout, although the library sets it anew on sending."""
    monkeypatch.setattr(CacheProxyConnection, "DEFAULT_SERVER_NAME", "valkey")
    timeouts: list[float] = []

    class Recording(Redis):
        """A client that records the timeout with which it reads each response."""

        def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
            timeouts.append(connection._conn._sock.gettimeout())
            read: Any = super().parse_response
            return read(connection, command_name, **options)

    server.rpush("jobs", "job")
    options: dict[str, Any] = {"protocol": 3, "cache_config": CacheConfig(), "socket_timeout": 5}
    with proxy(path, once()) as seen, Recording(port=seen.port, **options) as client:
        assert client.get("k") is None
        assert client.blpop(["jobs"], timeout=3) == [b"jobs", b"job"]
        assert client.get("k") is None
    assert timeouts == [5, 8, 5]


def test_a_blocking_command_takes_one_element(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The element was lost with the response; another attempt would lose the next one."""
    server.rpush("l", "a", "b")
    with (
        proxy(path, once(BLPOP=LOSE)) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        session("blpop", ["l"], timeout=1)
    assert server.lrange("l", 0, -1) == [b"b"]


@pytest.mark.parametrize("option", ["retry", "retry_on_error", "retry_on_timeout"])
def test_the_librarys_own_retries_are_refused(flavour: Flavour, option: str) -> None:
    """They would repeat any command."""
    value: Any = {"retry": flavour.no_retry(), "retry_on_error": [OSError], "retry_on_timeout": True}[option]
    with pytest.raises(TypeError, match=rf"`{option}` must not be given.*use policy="):
        flavour.ours(**{option: value})


@pytest.mark.parametrize("policy", [3, "fast", forbear.Limits()], ids=repr)
def test_a_policy_is_a_policy(flavour: Flavour, policy: Any) -> None:
    """Anything else is refused at once."""
    with pytest.raises(TypeError, match=r"`policy` must be a forbear\.Policy or None"):
        flavour.ours(policy=policy)


def test_a_policy_for_http_is_refused(flavour: Flavour) -> None:
    """It knows nothing of commands."""
    with pytest.raises(TypeError, match=r"take forbear\.services\.redis\.policy"):
        flavour.ours(policy=cloud_storage.policy)


def test_a_pool_that_retries_is_refused(flavour: Flavour) -> None:
    """Its connections would repeat any command beneath forbear, however the client is made of it."""
    valkeys = {"retry_on_timeout": True} if flavour.name.startswith("valkey") else {}
    pool = flavour.stock(**valkeys).connection_pool
    with pytest.raises(ValueError, match="`connection_pool` must not retry by itself"):
        flavour.ours(connection_pool=pool)
    with pytest.raises(ValueError, match="`connection_pool` must not retry by itself"):
        flavour.ours.from_pool(pool)


def test_a_port_that_is_closed(flavour: Flavour) -> None:
    """A run ends by its time limit, too."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    policy = AT_ONCE.with_backoff(forbear.Constant(5)).with_timeout(1)
    with flavour.connect(port, policy=policy) as session, pytest.raises(flavour.errors.ConnectionError) as caught:
        session("incr", "k")
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.TIMEOUT


def test_an_error_that_the_client_lets_out_is_the_callers(flavour: Flavour, path: str) -> None:
    """A policy around the client repeats what it wants to, even after an inner retry, but not an exhausted one."""
    want = forbear.retry(on=flavour.errors.ResponseError, attempts=4, backoff=forbear.Constant(0))
    refuse = b"-ERR not yet\r\n"
    with (
        proxy(path, in_turn(GET=[LOSE, refuse])) as seen,
        flavour.connect(seen.port, policy=AT_ONCE.with_attempts(3)) as session,
    ):
        assert want.call(session, "get", "k") is None
        assert seen.asked.count("GET") == 3
    with (
        proxy(path, in_turn(GET=[LOSE] * 9)) as seen,
        flavour.connect(seen.port, policy=AT_ONCE.with_attempts(3)) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        want.with_on(flavour.errors.ConnectionError).call(session, "get", "k")
    assert seen.asked.count("GET") == 3
