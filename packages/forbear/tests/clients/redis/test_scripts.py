"""Scripts that write and then answer with an error that otherwise proves that nothing was executed run once."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

import forbear
from forbear.clients.redis import promised
from forbear.core.report import report
from forbear_testkit.clients.redis.clusters import WITH_TRANSACTIONS, open_with
from forbear_testkit.clients.redis.flavours import Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import in_turn, once, proxy
from forbear_testkit.rows import sampled

ERRORS = [
    "LOADING Redis is loading the dataset in memory",
    "TRYAGAIN later",
    "ERR max number of clients reached",
    "READONLY You can't write against a read only replica.",
    "BUSY Redis is busy running a script.",
    "CLUSTERDOWN The cluster is down",
    "MASTERDOWN Link with MASTER is down",
    "NOREPLICAS Not enough good replicas to write.",
    "UNBLOCKED force unblock",
    "max number of clients reached",
]
SCRIPT = "redis.call('INCR', KEYS[1]) return redis.error_reply(ARGV[1])"
LIBRARY = f"#!lua name=forbear\nredis.register_function('f', function(KEYS, ARGV) {SCRIPT} end)"

Way = Callable[[Session, str], Any]


def by_sha(session: Session, error: str) -> Any:
    """Load the script and run it by its digest."""
    return session("evalsha", session("script_load", SCRIPT), 1, "k", error)


def as_function(session: Session, error: str) -> Any:
    """Load a library and call its function."""
    session("function_load", LIBRARY, True)
    return session("fcall", "f", 1, "k", error)


def at_once(session: Session, error: str) -> Any:
    """Run it under WATCH, before MULTI."""

    def run(pipe: Any) -> Any:
        return pipe.eval(SCRIPT, 1, "k", error)

    return session("transaction", run, "w")


WAYS: dict[str, Way] = {
    "EVAL": lambda session, error: session("eval", SCRIPT, 1, "k", error),
    "EVALSHA": by_sha,
    "FCALL": as_function,
    "pipeline": lambda session, error: session.execute([("EVAL", SCRIPT, 1, "k", error)], transaction=False),
    "two": lambda session, error: session.execute([("EVAL", SCRIPT, 1, "k", error), ("GET", "k")], transaction=False),
    "transaction": lambda session, error: session.execute([("EVAL", SCRIPT, 1, "k", error)], transaction=True),
    "at once": at_once,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", sampled(ERRORS, 3), ids=lambda error: "-".join(error.split()[:2]))
def test_a_script_that_wrote_runs_once(flavour: Flavour, server: redis.Redis, path: str, way: str, error: str) -> None:
    """It runs once whatever error it returns, since the client cannot tell it from the server's own."""
    with (
        proxy(path, once()) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises((flavour.errors.ConnectionError, flavour.errors.ResponseError)) as caught,
    ):
        WAYS[way](session, error)
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE
    assert result.maybe_done
    assert server.get("k") == b"1"


@pytest.mark.parametrize("error", ["TRYAGAIN later", *ERRORS[:1], ERRORS[6]], ids=lambda error: error.split()[0])
def test_a_script_in_a_transaction_that_was_not_begun(
    flavour: Flavour, server: redis.Redis, path: str, error: str
) -> None:
    """A command was refused before EXEC, so the script did not run, and the transaction is repeated."""
    commands: list[tuple[Any, ...]] = [("SET", "a", 1), ("EVAL", "return redis.call('INCR', KEYS[1])", 1, "k")]
    for refused in ("EVAL", "SET"):
        server.delete("k")
        with (
            proxy(path, once(**{refused: f"-{error}\r\n".encode()})) as seen,
            flavour.connect(seen.port) as session,
        ):
            assert session.execute(commands, transaction=True) == [True, 1]
        assert seen.asked.count("MULTI") == 2


@pytest.mark.parametrize("cluster", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_a_script_in_a_transaction_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The same on a cluster: repeated if it was refused before EXEC, and executed once if it may have been executed."""
    fates = in_turn(EVAL=[b"-LOADING Redis is loading\r\n", b"-MASTERDOWN Link with MASTER is down\r\n"])
    with proxied(nodes, fates, once()) as (seen, options), open_with(cluster, options) as session:
        assert session.execute([("EVAL", "return redis.call('INCR', KEYS[1])", 1, HERE)], transaction=True) == [1]
        assert seen[0].asked.count("MULTI") == 3
        with pytest.raises(cluster.errors.ConnectionError) as caught:
            session.execute([("EVAL", SCRIPT, 1, HERE, ERRORS[0])], transaction=True)
        assert session("get", HERE) == b"2"
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


def test_a_promise_is_believed(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """A script that its caller calls idempotent is repeated, after a loss as well as after such an error."""

    def run(session: Session) -> None:
        with promised("idempotent"), pytest.raises(flavour.errors.exceptions.ResponseError):
            session("eval", SCRIPT, 1, "k", "TRYAGAIN later")

    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        run(session)
    assert server.get("k") == b"11"


@pytest.mark.parametrize("command", [("EVAL_RO", "return redis.error_reply(ARGV[1])", 0), ("INCRBY", "k", 1)])
def test_what_proves_it_is_still_repeated(flavour: Flavour, path: str, command: tuple[Any, ...]) -> None:
    """A script that may only read, and a refusal of a plain command."""
    refused = b"-TRYAGAIN later\r\n"
    with proxy(path, once(**{command[0]: refused})) as seen, flavour.connect(seen.port) as session:
        if command[0] == "INCRBY":
            assert session("execute_command", *command) == 1
        else:
            with pytest.raises(flavour.errors.exceptions.ResponseError, match="for good"):
                session("execute_command", *command, "ERR for good")
    assert seen.asked.count(command[0]) == 2


def test_an_unknown_command_proves_nothing(flavour: Flavour, path: str) -> None:
    """An unknown command may run anything, so no error of it proves that nothing was executed."""
    with (
        proxy(path, once(RUN=b"-TRYAGAIN later\r\n")) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.exceptions.ResponseError),
    ):
        session("execute_command", "RUN", "k")
    assert seen.asked.count("RUN") == 1


@pytest.mark.parametrize("command", [("EVAL", SCRIPT, 1, "k", "TRYAGAIN later"), ("INCR", "k")], ids=["script", "INCR"])
def test_a_lost_response(flavour: Flavour, server: redis.Redis, path: str, command: tuple[Any, ...]) -> None:
    """A script may have done a part of its work, and its report says so; a single command is all or nothing."""
    with (
        proxy(path, once(EVAL="lose", INCR="lose")) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session("execute_command", *command)
    result = report(caught.value)
    assert result is not None
    assert result.maybe_done is (command[0] == "EVAL")
    assert ("; the attempt may have worked" in result.note) is result.maybe_done
    assert server.get("k") == b"1"


def test_an_error_of_a_script_that_leaves_no_doubt(flavour: Flavour, path: str) -> None:
    """An error that no retry may cure is the caller's: it has no report, as after any other command."""
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        with pytest.raises(flavour.errors.exceptions.ResponseError) as caught:
            session("eval", SCRIPT, 1, "k", "ERR for good")
        assert report(caught.value) is None


def test_a_script_that_is_repeated(flavour: Flavour, path: str) -> None:
    """Whatever the second attempt answers, the first one may have worked."""
    with proxy(path, once(EVAL="lose")) as seen, flavour.connect(seen.port) as session, promised("idempotent"):
        with pytest.raises(flavour.errors.exceptions.ResponseError) as caught:
            session("eval", SCRIPT, 1, "k", "ERR for good")
        result = report(caught.value)
    assert result is not None
    assert (result.count, result.maybe_done) == (2, True)
