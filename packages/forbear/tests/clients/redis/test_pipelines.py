"""Pipelines and transactions through a proxy: repeated as a whole, if every command in them may be."""

from typing import Any

import pytest
import redis

import forbear
from forbear.core.report import report
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.proxy import CUT, FORWARD, LOSE, discarding, in_turn, once, proxy

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"
READONLY = b"-READONLY You can't write against a read only replica.\r\n"
FULL = b"-ERR max number of clients reached\r\n"
KINDS = pytest.mark.parametrize("transaction", [True, False], ids=["transaction", "plain"])


@KINDS
def test_safe_commands_are_repeated_together(flavour: Flavour, path: str, transaction: bool) -> None:
    """The response to one is lost; all are sent again, and their responses are returned in order."""
    commands: list[tuple[Any, ...]] = [("SET", "a", "1"), ("GET", "a"), ("SADD", "s", "x")]
    with proxy(path, in_turn(SADD=[LOSE, CUT])) as seen, flavour.connect(seen.port) as session:
        ok, value, added = session.execute(commands, transaction=transaction)
    assert (ok, value) == (True, b"1")
    assert added in (0, 1)
    assert seen.asked.count("SET") == 3


@KINDS
@pytest.mark.parametrize("fate", [LOSE, CUT])
def test_one_unsafe_command_makes_all_unsafe(flavour: Flavour, path: str, transaction: bool, fate: str) -> None:
    """Its outcome is unknown, wherever the connection broke."""
    commands: list[tuple[Any, ...]] = [("INCRBY", "k", 1), ("GET", "k"), ("SET", "a", "1")]
    with proxy(path, once(SET=fate)) as seen, flavour.connect(seen.port) as session:
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session.execute(commands, transaction=transaction)
        assert session("get", "a") in (None, b"1")
    assert seen.asked.count("INCRBY") == 1
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE
    assert "with INCRBY may have been executed and must not be executed twice" in result.text


@pytest.mark.parametrize("response", [LOADING, READONLY], ids=["LOADING", "READONLY"])
def test_a_transaction_that_was_not_begun_is_repeated(flavour: Flavour, path: str, response: bytes) -> None:
    """One command was refused before EXEC, so nothing was executed, whatever it was."""
    with proxy(path, discarding("INCRBY", response)) as seen, flavour.connect(seen.port) as session:
        assert session.execute([("SET", "a", "1"), ("INCRBY", "k", 1)], transaction=True) == [True, 1]
    assert seen.executed.count("EXEC") == 1


def test_what_follows_a_refused_multi_is_executed_at_once(flavour: Flavour, path: str) -> None:
    """An older server refuses MULTI itself while it loads, and may have finished loading before the next command."""
    with proxy(path, in_turn(MULTI=[LOADING, LOADING])) as seen, flavour.connect(seen.port) as session:
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session.execute([("INCRBY", "k", 1), ("SET", "a", "1")], transaction=True)
        assert session.execute([("SET", "a", "1")], transaction=True) == [True]
    assert seen.executed.count("INCRBY") == 1
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("response", [LOADING, READONLY, FULL], ids=["LOADING", "READONLY", "FULL"])
def test_a_refusal_says_nothing_of_the_others(flavour: Flavour, path: str, response: bytes) -> None:
    """In a plain pipeline the commands before it may have been executed."""
    with proxy(path, once(INCRBY=response, GET=response)) as seen, flavour.connect(seen.port) as session:
        with pytest.raises((flavour.errors.ResponseError, flavour.errors.ConnectionError)):
            session.execute([("APPEND", "a", "1"), ("INCRBY", "k", 1)], transaction=False)
        assert session.execute([("SET", "b", "1"), ("GET", "b")], transaction=False) == [True, b"1"]
    assert seen.executed.count("APPEND") == 1


def test_a_refusal_of_the_only_command(flavour: Flavour, path: str) -> None:
    """There are no others."""
    with proxy(path, once(INCRBY=LOADING)) as seen, flavour.connect(seen.port) as session:
        assert session.execute([("INCRBY", "k", 1)], transaction=False) == [1]


@KINDS
def test_a_connection_that_breaks_before_anything_is_sent(flavour: Flavour, path: str, transaction: bool) -> None:
    """Any pipeline is sent again then."""
    with proxy(path, once(CLIENT=CUT)) as seen, flavour.connect(seen.port, client_name="me") as session:
        assert session.execute([("INCRBY", "k", 1), ("INCRBY", "k", 1)], transaction=transaction) == [1, 2]


@KINDS
def test_reports_leave_out_the_arguments(flavour: Flavour, path: str, transaction: bool) -> None:
    """The libraries write the arguments into the error; the value of a SET must not be logged."""
    heard: list[forbear.events.Event] = []
    policy = AT_ONCE.with_attempts(2).with_on_event(heard.append)
    with (
        proxy(path, in_turn(SET=[READONLY] * 2)) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(flavour.errors.ReadOnlyError, match="hunter2") as caught,
    ):
        session.execute([("SET", "k", "hunter2 ) of pipeline caused error: hunter2")], transaction=transaction)
    result = report(caught.value)
    assert result is not None
    assert "Command # 1 (SET) of pipeline caused error: " in result.attempts[0].text
    assert "hunter2" not in str(result)
    assert "hunter2" not in str([event.text for event in heard if isinstance(event, forbear.events.Failed)])


def test_errors_among_the_responses(flavour: Flavour, path: str) -> None:
    """An error that the caller wants among the responses is not repeated."""
    with proxy(path, once(INCRBY=READONLY)) as seen, flavour.connect(seen.port) as session:

        def run(client: Any) -> Any:
            return client.pipeline(transaction=False).set("a", "1").incr("k").execute(raise_on_error=False)

        ok, error = session.run(run)
    assert ok is True
    assert isinstance(error, flavour.errors.exceptions.ReadOnlyError)
    assert seen.asked.count("INCRBY") == 1


def test_scripts_are_loaded_before_a_pipeline(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """Asking for them and loading them is repeated by itself, and the queue survives that."""
    with proxy(path, in_turn(SCRIPT=[LOSE, CUT, FORWARD, LOSE])) as seen, flavour.connect(seen.port) as session:

        def run(client: Any) -> Any:
            pipe = client.pipeline()
            increment = client.register_script("return redis.call('INCR', KEYS[1])")
            added = increment(keys=["k"], client=pipe)
            if not flavour.is_async:
                assert added is pipe
                return pipe.set("a", "1").execute()

            async def rest() -> Any:
                await added
                return await pipe.set("a", "1").execute()

            return rest()

        assert session.run(run) == [1, True]
    assert server.get("k") == b"1"
    assert seen.executed.count("EXEC") == 1
