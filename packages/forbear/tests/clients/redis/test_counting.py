"""Count through a proxy that drops one response in a hundred: the counter never exceeds the number of increments.

`make test` counts to a few hundred in each way, `make soak` to a hundred thousand.
"""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, Session
from forbear_testkit.clients.redis.proxy import Script, at_random, once, proxy

RATE = 0.01
HARMLESS = AT_ONCE.with_attempts(None)

Step = Callable[[Session, int], Any]


def single(session: Session, number: int) -> int:
    """Send one INCR, and return how much it adds."""
    session("incr", "counter")
    return 1


def plain(session: Session, number: int) -> int:
    """Send a plain pipeline with two of them."""
    session.execute([("INCRBY", "counter", 1), ("SET", f"k{number}", "v"), ("INCRBY", "counter", 1)], transaction=False)
    return 2


def transaction(session: Session, number: int) -> int:
    """Send a transaction with two of them."""
    session.execute([("INCRBY", "counter", 1), ("INCRBY", "counter", 1)], transaction=True)
    return 2


STEPS: dict[str, tuple[Step, int]] = {"single": (single, 1), "plain": (plain, 2), "transaction": (transaction, 2)}


def drops(seed: int) -> Script:
    """Return the proxy's script, which loses responses to these commands."""
    return at_random(RATE, seed, b"INCRBY", b"EXEC", b"GET", b"SET")


def count(session: Session, errors: Any, name: str, times: int) -> tuple[int, int]:
    """Return how many increments were acknowledged and how many were lost; GET and SET in between must succeed."""
    step, amount = STEPS[name]
    done = lost = 0
    for number in range(times):
        try:
            done += step(session, number)
        except errors.ConnectionError:
            lost += amount
        assert session("set", "here", f"{number}")
        assert session("get", "here") == f"{number}".encode()
    return done, lost


def check(flavour: Flavour, server: redis.Redis, path: str, name: str, times: int) -> None:
    """Each increment is executed once if it was acknowledged, and at most once if it was lost."""
    with proxy(path, drops(seed=7)) as seen, flavour.connect(seen.port, policy=HARMLESS) as session:
        done, lost = count(session, flavour.errors, name, times)
    counted = int(str(server.get("counter"), "ascii"))  # type: ignore[arg-type]
    assert done <= counted <= done + lost
    assert 0 < lost < times / 10


@pytest.mark.parametrize("name", STEPS)
def test_the_counter_never_exceeds_the_increments(flavour: Flavour, server: redis.Redis, path: str, name: str) -> None:
    """A few hundred times."""
    check(flavour, server, path, name, 200)


@pytest.mark.soak
@pytest.mark.parametrize("name", STEPS)
def test_counting_to_a_hundred_thousand(flavour: Flavour, server: redis.Redis, path: str, name: str) -> None:
    """The same, long."""
    check(flavour, server, path, name, 100_000)


def test_the_library_alone_counts_too_far(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """Its own retries repeat every lost INCR, so the counter exceeds the number of increments."""
    with proxy(path, drops(seed=7)) as seen:
        # valkey-py repeats nothing by default, and any command with `retry_on_error=`.
        own = {} if flavour.errors is redis else {"retry_on_error": [flavour.errors.ConnectionError]}
        with flavour.connect_stock(seen.port, **own) as session:
            for _ in range(300):
                session("incr", "counter")
    assert int(str(server.get("counter"), "ascii")) > 300  # type: ignore[arg-type]


def test_without_losses(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """Without losses nothing is repeated at all."""
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        assert count(session, flavour.errors, "plain", 20) == (40, 0)
    assert seen.executed.count("INCRBY") == 40
