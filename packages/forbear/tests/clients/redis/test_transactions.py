"""WATCH loops and `transaction()` with two writers and lost responses: a change is applied once, or it is an error."""

import asyncio
from functools import partial
from inspect import isawaitable
from typing import Any

import pytest
import redis

import forbear
from forbear.core.report import report
from forbear.exchange.redis.pipelines import is_open
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.proxy import CUT, LOSE, Fate, in_turn, once, proxy
from forbear_testkit.clients.redis.watched import add_one, loop


def test_transaction_raises_a_lost_exec(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """It is unknown whether the change was applied, so it is not applied again."""
    with (
        proxy(path, once(EXEC=LOSE)) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        add_one(session)
    assert server.get("k") == b"1"
    assert seen.executed.count("EXEC") == 1
    result = report(caught.value)
    assert result is not None
    assert (result.operation, result.reason) == ("transaction", forbear.events.Reason.UNSAFE)
    assert caught.value.__notes__ == [result.note]


def test_a_loop_gets_a_lost_exec(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The loop gets no WatchError, or it would apply the change twice."""
    with (
        proxy(path, once(EXEC=LOSE)) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        loop(session, flavour.errors)
    assert server.get("k") == b"1"


@pytest.mark.parametrize("policy", [AT_ONCE, None], ids=["policy", "none"])
def test_a_lost_exec_without_a_policy(flavour: Flavour, server: redis.Redis, path: str, policy: Any) -> None:
    """A client that sends everything once raises the loss as well."""
    with (
        proxy(path, once(EXEC=LOSE)) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        add_one(session)
    assert server.get("k") == b"1"


@pytest.mark.parametrize("retries", [True, False], ids=["own-retries", "no-retries"])
def test_the_library_alone_applies_the_change_twice(
    flavour: Flavour, server: redis.Redis, path: str, retries: bool
) -> None:
    """With its retries or without them: it takes the lost connection for a conflict."""
    options = {} if retries else {"retry": flavour.no_retry()}
    with proxy(path, once(EXEC=LOSE)) as seen, flavour.connect_stock(seen.port, **options) as session:
        add_one(session)
    assert server.get("k") == b"2"


def test_a_conflict_runs_the_cycle_again(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The other writer's change and this one are both there."""
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        assert add_one(session, meanwhile=lambda: server.incrby("k", 10)) == [True]
    assert server.get("k") == b"11"
    assert seen.executed.count("EXEC") == 2


def test_a_conflict_then_a_lost_exec(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """With two writers and a lost response each change is applied once."""
    with (
        proxy(path, in_turn(EXEC=["forward", LOSE])) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        add_one(session, meanwhile=lambda: server.incrby("k", 10))
    assert server.get("k") == b"11"


@pytest.mark.parametrize("command", ["WATCH", "GET", "MULTI", "SET"])
@pytest.mark.parametrize("fate", [LOSE, CUT])
def test_a_loss_before_exec(flavour: Flavour, server: redis.Redis, path: str, command: str, fate: Fate) -> None:
    """Before EXEC is sent nothing is executed; once it is sent with the rest, the outcome is unknown."""
    with proxy(path, once(**{command: fate})) as seen, flavour.connect(seen.port) as session:
        if command in ("WATCH", "GET"):
            assert add_one(session) == [True]
        else:
            with pytest.raises(flavour.errors.ConnectionError):
                add_one(session)
    assert server.get("k") == (b"1" if command in ("WATCH", "GET") else None)


@pytest.mark.parametrize("command", ["WATCH", "GET"])
def test_a_loop_goes_on_after_a_loss_before_exec(
    flavour: Flavour, server: redis.Redis, path: str, command: str
) -> None:
    """Nothing was executed, so the library's WatchError is right."""
    with proxy(path, once(**{command: LOSE})) as seen, flavour.connect(seen.port) as session:
        loop(session, flavour.errors)
    assert server.get("k") == b"1"


def test_a_write_at_once_under_watch(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """It was executed at once, so its loss is raised as well."""

    def run(pipe: Any) -> Any:
        return pipe.incr("other")

    with (
        proxy(path, once(INCRBY=LOSE)) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        session("transaction", run, "k")
    assert server.get("other") == b"1"


def test_a_transaction_that_watches_nothing(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """It is repeated if all of it may be."""

    def safe(pipe: Any) -> Any:
        pipe.set("k", 1)

    def unsafe(pipe: Any) -> Any:
        pipe.incr("n")

    with proxy(path, in_turn(EXEC=[LOSE, "forward", LOSE])) as seen, flavour.connect(seen.port) as session:
        assert session("transaction", safe) == [True]
        with pytest.raises(flavour.errors.ConnectionError):
            session("transaction", unsafe)
    assert server.get("n") == b"1"


def test_conflicts_without_end(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The policy's limits hold: the WatchError is raised, with a report of the attempts."""

    def run(pipe: Any) -> Any:
        server.incr("k")
        pipe.multi()
        pipe.set("k", 0)

    with (
        proxy(path, once()) as seen,
        flavour.connect(seen.port, policy=AT_ONCE.with_attempts(3)) as session,
        pytest.raises(flavour.errors.WatchError) as caught,
    ):
        session("transaction", run, "k", watch_delay=0.001)
    result = report(caught.value)
    assert result is not None
    assert (result.reason, len(result.attempts)) == (forbear.events.Reason.ATTEMPTS, 3)
    assert [attempt.delay for attempt in result.attempts] == [0.001, 0.001, None]
    assert server.get("k") == b"3"


def test_the_value_of_the_function(flavour: Flavour, path: str) -> None:
    """`value_from_callable` returns it, as in the library."""

    def run(pipe: Any) -> str:
        return "value"

    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        assert session("transaction", run, "k", value_from_callable=True) == "value"


def test_an_error_of_the_function_is_raised(flavour: Flavour, path: str) -> None:
    """It is raised unchanged."""

    def run(pipe: Any) -> Any:
        raise KeyError("k")

    with (
        proxy(path, once()) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(KeyError) as caught,
    ):
        session("transaction", run, "k")
    assert report(caught.value) is None


def test_a_loss_elsewhere_in_the_function_is_raised(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """A command that the function sends by another client is not repeated because of this transaction."""
    with (
        proxy(path, once(INCRBY=LOSE)) as seen,
        flavour.connect(seen.port, policy=None) as other,
        flavour.connect(seen.port) as session,
    ):

        def run(pipe: Any) -> Any:
            # Of an asyncio client in the same event loop; a sync one is another altogether.
            return session.client.incr("other") if flavour.is_async else other("incr", "other")

        with pytest.raises(flavour.errors.ConnectionError):
            session("transaction", run, "k")
    assert server.get("other") == b"1"


def test_update_over_a_pipeline(server: redis.Redis, path: str) -> None:
    """With `mine` even a lost EXEC is cleared up: forbear.update tells its own write from another's."""
    from forbear.clients.redis import Redis
    from forbear.services.redis import is_conflict

    server.set("k", "0:")
    with (
        proxy(path, in_turn(EXEC=[LOSE, "forward", "forward"])) as seen,
        Redis(port=seen.port, decode_responses=True) as client,
        client.pipeline() as pipe,
    ):

        def read() -> str:
            pipe.reset()
            pipe.watch("k")
            return str(pipe.get("k"))

        def write(value: str) -> None:
            pipe.multi()
            pipe.set("k", value)
            pipe.execute()

        stored = forbear.update(
            read=read,
            modify=lambda value: f"{int(value.split(':')[0]) + 1}:me",
            write=write,
            conflict=is_conflict,
            mine=lambda value: value.endswith(":me"),
            policy=AT_ONCE,
        )
    assert stored == "1:me"
    assert seen.executed.count("EXEC") == 1


def test_an_interrupted_cleanup_gives_the_connection_back(
    flavour: Flavour, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever interrupts the UNWATCH gets the interruption, and the pool gets the connection, closed."""

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    async def steps(client: Any) -> Any:
        pipe = client.pipeline()
        await when_ready(pipe.watch("k"))
        connection = pipe.connection
        with monkeypatch.context() as patch:
            patch.setattr(connection, "send_command", interrupted)
            with pytest.raises(KeyboardInterrupt):
                await when_ready(pipe.reset())
        assert not pipe.watching
        assert pipe.connection is None
        assert not is_open(connection)

    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        if flavour.is_async:
            session.run(steps)
        else:
            asyncio.run(steps(session.client))
        assert session("get", "k") is None


async def when_ready(value: Any) -> Any:
    """Return the value of a sync client, or that of an asyncio client once it is there."""
    return await value if isawaitable(value) else value


def test_transactions_with_options_of_the_library(flavour: Flavour, path: str, server: redis.Redis) -> None:
    """`value_from_callable` returns the function's value; `max_tries` of valkey-py limits the cycles."""
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        assert "Pipeline" in session("transaction", repr, value_from_callable=True)
        if flavour.name.startswith("valkey"):
            with pytest.raises(flavour.errors.WatchError) as caught:
                session("transaction", partial(conflicting, server), "k", max_tries=2)
            assert len(attempts_of(caught.value)) == 2


def conflicting(server: redis.Redis, pipe: Any) -> None:
    """Queue a write, while another writer changes the watched key."""
    server.incr("k")
    pipe.multi()
    pipe.incr("k")


def attempts_of(error: BaseException) -> Any:
    """Return the attempts that the report of an error lists."""
    made = report(error)
    assert made is not None
    return made.attempts
