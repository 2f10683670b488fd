"""Cluster clients on a real cluster of two nodes, each behind a proxy."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.crc import key_slot

import forbear
from forbear.core.backoff import Constant
from forbear.core.report import report
from forbear_testkit.clients.redis.clusters import CLUSTERS, LOADING, WITH_TRANSACTIONS, open_with, value
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, no_retry, wait_patiently
from forbear_testkit.clients.redis.nodes import HERE, THERE, proxied
from forbear_testkit.clients.redis.proxy import CUT, FORWARD, LOSE, Fate, at_random, in_turn, once
from forbear_testkit.rows import sampled

HARMLESS = AT_ONCE.with_attempts(None)
TRYAGAIN = b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n"


@pytest.fixture(params=CLUSTERS, ids=lambda flavour: flavour.name)
def cluster(request: pytest.FixtureRequest) -> Flavour:
    """One library in one style."""
    chosen: Flavour = request.param
    return chosen


@pytest.mark.parametrize("key", [HERE, THERE])
@pytest.mark.parametrize("fate", [LOSE, CUT])
def test_single_commands(cluster: Flavour, nodes: tuple[int, ...], key: str, fate: Fate) -> None:
    """After a loss on either node a safe command is repeated, and the error of an unsafe one is raised."""
    script = in_turn(GET=[fate, fate], INCRBY=[fate])
    with proxied(nodes, script, script) as (_, options), open_with(cluster, options) as session:
        assert session("get", key) is None
        with pytest.raises(cluster.errors.ConnectionError) as caught:
            session("incr", key)
        assert session("incr", key) == (2 if fate is LOSE else 1)
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("response", [LOADING, TRYAGAIN, "MOVED"], ids=["LOADING", "TRYAGAIN", "MOVED"])
def test_what_was_not_executed_is_repeated(cluster: Flavour, nodes: tuple[int, ...], response: Any) -> None:
    """Redirections are followed by the library, refusals by the policy."""
    if response == "MOVED":
        response = f"-MOVED {key_slot(HERE.encode())} 127.0.0.1:{nodes[0]}\r\n".encode()
    with (
        proxied(nodes, in_turn(INCRBY=[response, response]), once()) as (_, options),
        open_with(cluster, options) as session,
    ):
        assert session("incr", HERE) == 1


@pytest.mark.parametrize("fates", sampled([["ASK", "MOVED"], [], ["MOVED"], ["ASK"]], 1), ids=" ".join)
def test_blocking_commands_take_their_time(cluster: Flavour, nodes: tuple[int, ...], fates: list[str]) -> None:
    """Neither the attempt timeout nor that of the socket ends a command while the server blocks it."""
    responses: list[bytes] = []

    def block(limit: float) -> None:
        policy = AT_ONCE.with_attempt_timeout(limit)
        with (
            proxied(nodes, lambda command: responses.pop() if responses else FORWARD, once()) as (seen, options),
            open_with(cluster, options, policy=policy, socket_timeout=limit) as session,
        ):
            session("get", HERE)
            responses[:] = [
                f"-{fate} {key_slot(HERE.encode())} 127.0.0.1:{seen[0].port}\r\n".encode() for fate in fates
            ]
            before = seen[0].connections
            assert session("blpop", [HERE], timeout=limit + 0.05) is None
            assert session("get", HERE) is None
        assert (seen[0].asked.count("BLPOP"), seen[0].connections) == (1 + len(fates), before)

    wait_patiently(block)


def test_a_node_that_cannot_be_reached(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Its handshake breaks, which is before any command is sent."""
    with (
        proxied(nodes, once(), in_turn(CLIENT=[CUT, CUT])) as (_, options),
        open_with(cluster, options, client_name="me") as session,
    ):
        assert session("incr", THERE) == 1


def test_a_command_for_several_nodes(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """One node may have executed what another refused, so only a safe command is repeated."""
    with (
        proxied(nodes, once(), in_turn(EVAL=[LOADING], DBSIZE=[LOADING])) as (seen, options),
        open_with(cluster, options) as session,
    ):
        assert session("dbsize", target_nodes="primaries") == 0
        with pytest.raises(cluster.errors.ConnectionError):
            session("execute_command", "EVAL", "return 1", 0, target_nodes="primaries")
    assert sorted(there.executed.count("EVAL") for there in seen) == [0, 1]


@pytest.mark.parametrize("fate", [LOSE, CUT, TRYAGAIN], ids=["lose", "cut", "TRYAGAIN"])
def test_a_pipeline_of_safe_commands(cluster: Flavour, nodes: tuple[int, ...], fate: Fate) -> None:
    """A command that failed on one node is sent again by itself."""
    commands: list[tuple[Any, ...]] = [("SET", HERE, 1), ("SET", THERE, 2), ("GET", HERE), ("GET", THERE)]
    with proxied(nodes, once(), in_turn(GET=[fate, fate])) as (seen, options), open_with(cluster, options) as session:
        assert session.execute(commands) == [True, True, b"1", b"2"]
    assert seen[0].executed.count("SET") == 1


@pytest.mark.parametrize("raising", [True, False])
def test_a_pipeline_with_an_unsafe_command(cluster: Flavour, nodes: tuple[int, ...], raising: bool) -> None:
    """The error of its loss is raised, and nothing is executed twice."""

    def run(client: Any) -> Any:
        return client.pipeline().incr(HERE).incr(THERE).get(HERE).execute(raise_on_error=raising)

    with proxied(nodes, once(), once(INCRBY=LOSE)) as (_, options), open_with(cluster, options) as session:
        if raising:
            with pytest.raises(cluster.errors.ConnectionError, match=r"Command # 2 .INCRBY. of pipeline") as caught:
                session.run(run)
            error: Any = caught.value
        else:
            first, error, third = session.run(run)
            assert (first, third) == (1, b"1")
    result = report(error)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE
    assert (value(nodes, HERE), value(nodes, THERE)) == (1, 1)


def test_a_refusal_that_is_given_to_all_commands(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """redis-py and valkey-py give the LOADING of one command to those, too, that were answered before it."""
    commands: list[tuple[Any, ...]] = [("INCRBY", HERE, 1), ("GET", HERE)]
    with proxied(nodes, once(GET=LOADING), once()) as (_, options), open_with(cluster, options) as session:
        with suppress(cluster.errors.ConnectionError):
            session.execute(commands)
        assert value(nodes, HERE) == 1


def test_a_pipeline_whose_commands_were_not_executed(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Each is sent again by itself, whatever it is."""
    with (
        proxied(nodes, once(), in_turn(INCRBY=[TRYAGAIN, TRYAGAIN])) as (_, options),
        open_with(cluster, options) as session,
    ):
        assert session.execute([("INCRBY", HERE, 1), ("INCRBY", THERE, 1)]) == [1, 1]


def test_patience_has_an_end_in_a_pipeline(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Once forbear gives up on one command, the others keep their errors."""
    with (
        proxied(nodes, once(), in_turn(GET=[LOADING] * 9)) as (seen, options),
        open_with(cluster, options, policy=AT_ONCE.with_attempts(2)) as session,
        pytest.raises(cluster.errors.ConnectionError) as caught,
    ):
        session.execute([("GET", THERE), ("GET", THERE), ("GET", HERE)])
    assert report(caught.value) is not None
    assert seen[1].asked.count("GET") <= 2 + 2


def test_an_empty_pipeline_and_one_without_a_policy(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Nothing is sent, or everything once."""
    with (
        proxied(nodes, once(GET=LOSE), once()) as (seen, options),
        open_with(cluster, options, policy=None) as session,
    ):
        assert session.execute([]) == []
        with pytest.raises(cluster.errors.ConnectionError):
            session.execute([("GET", HERE)])
    assert seen[0].executed.count("GET") == 1


def test_the_library_alone_executes_a_pipeline_twice(nodes: tuple[int, ...]) -> None:
    """The library sends lost commands again, even with its retries off."""
    with (
        proxied(nodes, once(INCRBY=LOSE), once()) as (_, options),
        redis.RedisCluster(**options, retry=no_retry(redis, redis)()) as client,
    ):
        pipe: Any = client.pipeline()
        assert pipe.incr(HERE).execute() == [2]


@pytest.mark.parametrize("flavour", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_transactions_of_a_cluster_are_applied_once(flavour: Flavour, nodes: tuple[int, ...]) -> None:
    """A conflict runs the cycle again, a lost EXEC is raised, and a refused one is repeated."""
    turns = [lambda: value_set(nodes, 10)]

    def run(pipe: Any) -> Any:
        def change(result: Any) -> None:
            if turns:
                turns.pop()()
            pipe.multi()
            pipe.set(HERE, int(result or 0) + 1)

        result = pipe.get(HERE)
        if not flavour.is_async:
            return change(result)

        async def rest() -> None:
            change(await result)

        return rest()

    with (
        proxied(nodes, in_turn(WATCH=["forward", LOSE], EXEC=["forward", "forward", LOSE]), once()) as (_, options),
        open_with(flavour, options) as session,
    ):
        session("transaction", run, HERE)
        assert value(nodes, HERE) == 11
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session("transaction", run, HERE)
    assert value(nodes, HERE) == 12
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("flavour", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_a_transaction_that_watches_nothing(flavour: Flavour, nodes: tuple[int, ...]) -> None:
    """It is repeated if it was not begun, and otherwise only if every command may be repeated."""
    aborted = b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    script = in_turn(INCRBY=[LOADING], SET=[LOSE], EXEC=["forward", aborted])
    with proxied(nodes, script, once()) as (seen, options), open_with(flavour, options) as session:
        assert session.execute([("SET", HERE, 1)], transaction=True) in ([True], [b"OK"])
        assert session.execute([("INCRBY", HERE, 1)], transaction=True) == [2]
    assert seen[0].executed.count("SET") == 2


@pytest.mark.parametrize("flavour", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_what_follows_a_refused_multi_is_executed_at_once(flavour: Flavour, nodes: tuple[int, ...]) -> None:
    """As on one server."""
    with (
        proxied(nodes, once(MULTI=LOADING), once()) as (seen, options),
        open_with(flavour, options) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        session.execute([("INCRBY", HERE, 1)], transaction=True)
    assert seen[0].executed.count("INCRBY") == 1


def count(cluster: Flavour, nodes: tuple[int, ...], times: int) -> None:
    """Increment a counter on either node so many times, one by one and in pipelines, while responses get lost."""
    weather = [at_random(0.01, seed, b"INCRBY", b"GET", b"SET") for seed in (1, 2)]
    done = lost = 0
    with proxied(nodes, *weather) as (_, options), open_with(cluster, options, policy=HARMLESS) as session:
        for number in range(times):
            commands = [("INCRBY", HERE, 1), ("INCRBY", THERE, 1)][: 1 + number % 2]
            try:
                session.execute(commands) if number % 2 else session("incr", HERE)
                done += len(commands)
            except cluster.errors.ConnectionError:
                lost += len(commands)
            assert session("set", f"{{a}}{number % 100}", number)
            assert session("get", f"{{a}}{number % 100}") == f"{number}".encode()
    assert done <= value(nodes, HERE) + value(nodes, THERE) <= done + lost
    assert 0 < lost < times / 10


def test_counters_of_a_cluster_never_exceed_the_increments(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The counters never exceed the number of increments, and safe commands always succeed."""
    count(cluster, nodes, 200)


@pytest.mark.soak
def test_counting_to_a_hundred_thousand(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The same, long."""
    count(cluster, nodes, 100_000)


def value_set(nodes: tuple[int, ...], number: int) -> None:
    """Another writer, past every proxy."""
    with redis.RedisCluster(host="127.0.0.1", port=nodes[0]) as client:
        client.set(HERE, number)


@pytest.mark.parametrize(("second", "attempts"), [("get", 2), ("incr", 1)])
@pytest.mark.parametrize("transaction", [False, True])
def test_functions_with_pipelines_of_plain_clients(
    nodes: tuple[int, ...], second: str, attempts: int, transaction: bool
) -> None:
    """A function is called again after a lost pipeline that only reads; its commands are seen, though it forgets them.

    The other clients repeat the commands by themselves, past the proxy.
    """
    calls: list[Any] = []

    @forbear.retry(Exception, attempts=2, backoff=Constant(0))
    async def work(client: redis.asyncio.RedisCluster) -> Any:
        calls.append(client)
        pipeline = client.pipeline(transaction=transaction)
        for name in ("get", second):
            getattr(pipeline, name)(HERE)
        return await pipeline.execute()

    async def connected(options: dict[str, Any]) -> None:
        async with redis.asyncio.RedisCluster(**options, retry=no_retry(redis, redis.asyncio)()) as client:
            await work(client)

    script = in_turn(EXEC=[CUT] * 9) if transaction else in_turn(GET=[CUT] * 9)
    with proxied(nodes, script, once()) as (_, options), pytest.raises(redis.ConnectionError):
        asyncio.run(connected(options))
    assert len(calls) == attempts
