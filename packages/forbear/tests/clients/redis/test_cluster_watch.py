"""WATCH, EXEC and scripts on a real cluster: a lost or refused command is executed at most once."""

from collections.abc import Callable
from typing import Any

import pytest

import forbear
from forbear.core.report import report
from forbear_testkit.clients.redis.clusters import CLUSTERS, WITH_TRANSACTIONS, open_with, value
from forbear_testkit.clients.redis.flavours import Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import FORWARD, HANG, LOSE, Command, Fate, Script, in_turn, once
from forbear_testkit.clients.redis.watched import REFUSALS
from forbear_testkit.rows import sampled

transactional = pytest.mark.parametrize("flavour", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)

SCRIPT = "redis.call('INCR', KEYS[1]) return redis.error_reply(ARGV[1])"


def add_one(session: Session, errors: Any) -> None:
    """Increment a key by `transaction()`."""

    def change(pipe: Any, result: Any) -> None:
        pipe.multi()
        pipe.set(HERE, int(result or 0) + 1)

    def run(pipe: Any) -> None:
        change(pipe, pipe.get(HERE))

    async def arun(pipe: Any) -> None:
        change(pipe, await pipe.get(HERE))

    session("transaction", arun if hasattr(session.client, "aclose") else run, HERE)


def loop(session: Session, errors: Any) -> None:
    """Increment a key by a loop of the caller's own."""

    def run(client: Any) -> None:
        with client.pipeline(transaction=True) as pipe:
            while True:
                try:
                    pipe.watch(HERE)
                    result = int(pipe.get(HERE) or 0)
                    pipe.multi()
                    pipe.set(HERE, result + 1)
                    pipe.execute()
                    return
                except errors.WatchError:
                    continue

    async def arun(client: Any) -> None:
        async with client.pipeline(transaction=True) as pipe:
            while True:
                try:
                    await pipe.watch(HERE)
                    result = int(await pipe.get(HERE) or 0)
                    pipe.multi()
                    pipe.set(HERE, result + 1)
                    await pipe.execute()
                    return
                except errors.WatchError:
                    continue

    session.run(arun if hasattr(session.client, "aclose") else run)


CHANGES = pytest.mark.parametrize("change", [add_one, loop], ids=["transaction", "loop"])
Change = Callable[[Session, Any], None]


def lost_exec(later: Fate) -> Script:
    """The response to the first EXEC is lost; asking for the nodes and lifting the WATCH then meets `later`."""
    lost, left = [False], [4]

    def script(command: Command) -> Fate:
        if command[0] == b"EXEC" and not lost[0]:
            lost[0] = True
            return LOSE
        if lost[0] and command[0] in (b"HELLO", b"CLIENT", b"CLUSTER", b"COMMAND", b"UNWATCH") and left[0]:
            left[0] -= 1
            return later
        return FORWARD

    return script


@transactional
@CHANGES
@pytest.mark.parametrize("later", sampled([REFUSALS["LOADING"], HANG, REFUSALS["BUSY"], REFUSALS["TRYAGAIN"]], 1))
def test_a_lost_exec(flavour: Flavour, nodes: tuple[int, ...], change: Change, later: Fate) -> None:
    """The client then asks for the nodes again, and a failure of that says nothing about EXEC."""
    options = {"socket_timeout": 1 if later == HANG else 10, "client_name": "me", "reinitialize_steps": 1}
    with (
        proxied(nodes, lost_exec(later), once(CLUSTER=later)) as (seen, there),
        open_with(flavour, there, **options) as session,
        pytest.raises(Exception) as caught,  # noqa: PT011 - whatever the library makes of it
    ):
        change(session, flavour.errors)
    assert value(nodes, HERE) == 1
    assert seen[0].executed.count("EXEC") == 1
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


@transactional
@CHANGES
@pytest.mark.parametrize("command", ["GET", "SET"])
@pytest.mark.parametrize("refusal", sampled(["MASTERDOWN", "LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN"], 1))
def test_a_refusal_under_watch(
    flavour: Flavour, nodes: tuple[int, ...], change: Change, command: str, refusal: str
) -> None:
    """Nothing was executed, so the cycle begins again."""
    script = in_turn(**{command: [REFUSALS[refusal]] * 2})
    with proxied(nodes, script, once()) as (seen, options), open_with(flavour, options) as session:
        change(session, flavour.errors)
        assert session("get", HERE) == b"1"
    assert seen[0].asked.count("WATCH") == 3


@transactional
@CHANGES
@pytest.mark.parametrize("command", ["WATCH", "GET"])
def test_a_loss_before_exec(flavour: Flavour, nodes: tuple[int, ...], change: Change, command: str) -> None:
    """The WATCH is gone with its connection, so the cycle begins again with it."""
    script = in_turn(**{command: [LOSE]})
    with proxied(nodes, script, once()) as (seen, options), open_with(flavour, options) as session:
        change(session, flavour.errors)
    assert value(nodes, HERE) == 1
    assert seen[0].asked.count("WATCH") == 2


WAYS = [
    *((flavour, way) for flavour in CLUSTERS for way in ("single", "pipeline")),
    *((flavour, "transaction") for flavour in WITH_TRANSACTIONS),
]


@pytest.mark.parametrize(("flavour", "way"), WAYS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("error", sampled(["LOADING x", "READONLY x", "BUSY x", "MASTERDOWN x"], 1))
def test_a_script_that_wrote_runs_once(flavour: Flavour, nodes: tuple[int, ...], way: str, error: str) -> None:
    """Whatever error it returns; the library follows only what the cluster itself answers."""
    command = ("EVAL", SCRIPT, 1, HERE, error)

    def run(session: Session) -> None:
        if way == "single":
            session("execute_command", *command)
        else:
            session.execute([command], transaction=way == "transaction")

    with (
        proxied(nodes, once(), once()) as (_, options),
        open_with(flavour, options) as session,
        pytest.raises(Exception) as caught,  # noqa: PT011 - of many classes
    ):
        run(session)
    assert value(nodes, HERE) == 1
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE
