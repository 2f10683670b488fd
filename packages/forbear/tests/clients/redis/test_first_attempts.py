"""Budgets that count first attempts, in Redis clients: nothing is sent without leave, and every attempt ends."""

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import redis

import forbear
from forbear import Throttled
from forbear.budgets import Budget
from forbear.events import Reason
from forbear.exchange.redis.settings import address_of
from forbear_testkit.clients.redis.clusters import CLUSTERS, open_with
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, THERE, proxied
from forbear_testkit.clients.redis.proxy import CUT, Script, in_turn, once, proxy
from forbear_testkit.clients.redis.watched import add_one, loop
from forbear_testkit.run.budgets import ONCE, TWICE, Closed, Noted, counted

Step = Callable[[Session, Any], object]


def command(session: Session, errors: Any) -> object:
    """Send one command."""
    return session("get", "k")


def plain(session: Session, errors: Any) -> object:
    """Send a plain pipeline."""
    return session.execute([("GET", "k"), ("GET", "j")], transaction=False)


def atomic(session: Session, errors: Any) -> object:
    """Send a transaction."""
    return session.execute([("GET", "k"), ("GET", "j")], transaction=True)


def cycle(session: Session, errors: Any) -> object:
    """Run a WATCH cycle that forbear repeats."""
    return add_one(session)


LAST = ["admit", "success", "release"]
"""The log of EXEC in a cycle that began again: the success is that of the retried run."""

STEPS = [command, plain, atomic, cycle, loop]
STEPS_IDS = [step.__name__ for step in STEPS]


@pytest.mark.parametrize("step", STEPS, ids=STEPS_IDS)
def test_nothing_is_sent_without_leave(flavour: Flavour, server: redis.Redis, path: str, step: Step) -> None:
    """A refused first attempt is a Throttled with a report; the server has not seen a command."""
    events: list[forbear.events.Event] = []
    policy = AT_ONCE.with_budget(Budget(Closed())).with_on_event(events.append)
    with (
        proxy(path, once()) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(Throttled) as caught,
    ):
        step(session, flavour.errors)
    assert {"GET", "WATCH", "MULTI"}.isdisjoint(seen.asked)
    given_up = forbear.report(caught.value)
    assert given_up is not None
    assert (given_up.reason, given_up.count) == (Reason.BUDGET, 1)
    assert [type(event) for event in events] == [forbear.events.Failed, forbear.events.GaveUp]


@pytest.mark.parametrize(
    ("step", "script", "log"),
    [
        (command, once, ONCE),
        (command, lambda: once(GET=CUT), TWICE),
        (command, lambda: in_turn(GET=[CUT] * 9), ["admit", "release", "take", "release", "take", "release"]),
        (plain, once, ONCE),
        (plain, lambda: once(GET=CUT), TWICE),
        (atomic, lambda: once(MULTI=CUT), TWICE),
        (cycle, once, ONCE),
        (cycle, lambda: once(GET=CUT), TWICE),
        (cycle, lambda: in_turn(WATCH=[CUT] * 9), ["admit", "release", "take", "release", "take", "release"]),
        (loop, once, ONCE * 3),  # WATCH, GET and EXEC, each by itself
        (loop, lambda: once(GET=CUT), [*ONCE, "admit", "release", "take", "release", *ONCE, *ONCE, *LAST]),
    ],
    ids=[
        *(
            "command",
            "command-retried",
            "command-in-vain",
            "plain",
            "plain-retried",
            "atomic",
            "cycle",
            "cycle-retried",
        ),
        *("cycle-in-vain", "loop", "loop-begins-again"),
    ],
)
def test_every_attempt_is_counted_and_ends(
    flavour: Flavour, server: redis.Redis, path: str, step: Step, script: Callable[[], Script], log: list[str]
) -> None:
    """In this order, and none is under way in the end."""
    budget = Noted()
    policy = AT_ONCE.with_attempts(3).with_budget(budget)
    with proxy(path, script()) as seen, flavour.connect(seen.port, policy=policy) as session:
        with suppress(flavour.errors.ConnectionError):
            step(session, flavour.errors)
        assert budget.active == 0
    assert budget.log == log


@pytest.mark.parametrize(
    ("step", "script", "requests", "accepts"),
    [
        (command, once, 1, 1),
        (command, lambda: once(GET=CUT), 2, 1),
        (command, lambda: in_turn(GET=[CUT] * 9), 3, 0),
        (plain, lambda: once(GET=CUT), 2, 1),
        (atomic, once, 1, 1),
        (cycle, lambda: once(GET=CUT), 2, 1),
        (loop, once, 3, 3),
    ],
)
def test_the_throttle_counts_what_is_known(
    flavour: Flavour, server: redis.Redis, path: str, step: Step, script: Callable[[], Script], requests: int,
    accepts: int,
) -> None:  # fmt: skip
    """Google's throttle counts each attempt once, with its outcome."""
    budget = Budget.google_sre()
    policy = AT_ONCE.with_attempts(3).with_budget(budget)
    with proxy(path, script()) as seen, flavour.connect(seen.port, policy=policy) as session:
        with suppress(flavour.errors.ConnectionError):
            step(session, flavour.errors)
        assert counted(budget) == (requests, accepts)


def test_an_interrupted_command_ends_its_attempt(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """An error that is no Exception passes through, and the attempt is over while somebody holds it."""
    budget = Noted()

    def interrupt(value: bytes, **options: object) -> bytes:
        assert budget.active == 1
        raise KeyboardInterrupt

    with proxy(path, once()) as seen, flavour.connect(seen.port, policy=AT_ONCE.with_budget(budget)) as session:
        session.client.set_response_callback("ECHO", interrupt)
        with pytest.raises(KeyboardInterrupt) as kept:
            session("echo", "a")
        assert (budget.active, kept.value.args) == (0, ())


def test_each_server_has_its_own_budget(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """One policy for two servers: the retries of the one are used up, and those of the other are not."""
    budget = Budget.per_host(forbear.budgets.TokenBucket(1, deposit=0))
    policy = AT_ONCE.with_budget(budget)
    with proxy(path, in_turn(GET=[CUT] * 9)) as bad, proxy(path, once(GET=CUT)) as good:
        with (
            flavour.connect(bad.port, policy=policy) as session,
            pytest.raises(flavour.errors.ConnectionError) as caught,
        ):
            session("get", "k")
        with flavour.connect(good.port, policy=policy) as session:
            assert session("get", "k") is None
    assert (bad.asked.count("GET"), good.asked.count("GET")) == (2, 2)
    given_up = forbear.report(caught.value)
    assert given_up is not None
    assert given_up.reason is Reason.BUDGET
    assert not budget.of(f"127.0.0.1:{bad.port}", "redis").take()


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "localhost:6379"),
        ({"host": "db", "port": 7}, "db:7"),
        ({"path": "/run/valkey.sock", "db": 3}, "/run/valkey.sock"),
        ({"unix_socket_path": "/run/valkey.sock"}, "/run/valkey.sock"),
        ({"service_name": "mymaster", "host": "db"}, "mymaster"),
        ({"url": "redis://user:secret@db:7/0?x=1"}, "db:7/0"),
        ({"startup_nodes": [SimpleNamespace(host="db", port=8)]}, "db:8"),
    ],
)
def test_the_address_of_a_client(options: dict[str, object], address: str) -> None:
    """The name under which a budget per host counts has no secrets."""
    assert address_of(options) == address


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_a_cluster_is_one_host(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """All its nodes share one budget; commands and pipelines are counted, and those sent again, too."""
    made: list[Noted] = []

    def make() -> Noted:
        made.append(Noted())
        return made[-1]

    policy = AT_ONCE.with_budget(Budget.per_host(make))
    with proxied(nodes, once(GET=CUT), once()) as (_, options), open_with(cluster, options, policy=policy) as session:
        assert session("get", HERE) is None
        assert session("get", THERE) is None
        assert session.execute([("GET", HERE), ("GET", THERE)]) == [None, None]
    budget = made[0]
    assert (len(made), budget.active) == (1, 0)
    assert budget.log.count("take") == 1
    assert budget.log.count("admit") == budget.log.count("success") >= 3


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_a_pipeline_on_a_cluster_is_repaired_within_the_budget(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The commands that are sent again are calls of their own, and all of them end."""
    budget = Noted()
    policy = AT_ONCE.with_budget(budget)
    with proxied(nodes, once(GET=CUT), once()) as (_, options), open_with(cluster, options, policy=policy) as session:
        assert session.execute([("GET", HERE), ("GET", THERE)]) == [None, None]
    assert budget.active == 0
    assert budget.log.count("take") == 1
