"""The attempt timeout holds for each step from WATCH to EXEC, and a blocking command may take longer."""

from typing import Any

import pytest
import redis

from forbear_testkit.clients.redis.clusters import WITH_TRANSACTIONS, open_with
from forbear_testkit.clients.redis.flavours import AT_ONCE, TOO_SLOW, Flavour, Session, wait_patiently
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import HANG, in_turn, once, proxy
from forbear_testkit.clients.redis.watched import add_one


@pytest.mark.parametrize("command", ["WATCH", "GET"])
def test_a_step_of_a_transaction(flavour: Flavour, server: redis.Redis, path: str, command: str) -> None:
    """If a step before EXEC gets no response in time, the whole cycle begins again."""

    def attempt(limit: float) -> None:
        server.flushall()
        policy = AT_ONCE.with_attempt_timeout(limit)
        with proxy(path, in_turn(**{command: [HANG]})) as seen, flavour.connect(seen.port, policy=policy) as session:
            add_one(session)
        assert (seen.asked.count("WATCH"), seen.executed.count("EXEC")) == (2, 1)

    wait_patiently(attempt)
    assert server.get("k") == b"1"


def test_exec(flavour: Flavour, path: str) -> None:
    """An EXEC without a response in time may have been executed, so its error is raised."""
    policy = AT_ONCE.with_attempt_timeout(0.25)
    with (
        proxy(path, in_turn(EXEC=[HANG])) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(TOO_SLOW),
    ):
        add_one(session)
    assert seen.asked.count("EXEC") == 1


@pytest.mark.parametrize("cluster", WITH_TRANSACTIONS, ids=lambda cluster: cluster.name)
def test_exec_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The same on a cluster, without a WATCH."""

    def queue(pipe: Any) -> None:
        pipe.incr(HERE)

    policy = AT_ONCE.with_attempt_timeout(0.25)
    with (
        proxied(nodes, in_turn(EXEC=[HANG]), once()) as (seen, options),
        open_with(cluster, options, policy=policy) as session,
        pytest.raises(TOO_SLOW),
    ):
        session("transaction", queue)
    assert seen[0].asked.count("EXEC") == 1


def test_a_blocking_command_under_watch(flavour: Flavour, path: str) -> None:
    """It may take as long as the server may block it, on top of the attempt timeout."""

    def watch(session: Session, limit: float) -> object:
        def run(client: Any) -> object:
            with client.pipeline() as pipe:
                pipe.watch("k")
                return pipe.blpop("nothing", limit + 0.05)

        async def arun(client: Any) -> object:
            async with client.pipeline() as pipe:
                await pipe.watch("k")
                return await pipe.blpop("nothing", limit + 0.05)

        return session.run(arun if flavour.is_async else run)

    def attempt(limit: float) -> None:
        with proxy(path, once()) as seen:
            policy = AT_ONCE.with_attempt_timeout(limit)
            with flavour.connect(seen.port, policy=policy) as session:
                assert watch(session, limit) is None

    wait_patiently(attempt)
