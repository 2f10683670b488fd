"""The bound: what a fleet gets from a shared bucket, and that it is enough; in virtual time, on a real Valkey."""

from collections.abc import Generator
from itertools import count
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.budget import MICRO, micro
from forbear.run.budget import Budget
from forbear.shared_budget.process import PendingGrant, ProcessShare
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.shared_budget.fleet import Fleet, Server, retried, running_server

WINDOW = 5.0
_names = count()


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    """Run one server for all tests of this module."""
    with running_server() as running:
        yield running


class Happened(NamedTuple):
    """Something that counts for the bound: its time, and micro-tokens of each kind."""

    at: float
    earned: int = 0
    retry: int = 0
    flush: int = 0


class History:
    """A fleet of `processes`, played step by step; `events` is what counts."""

    def __init__(self, server: Server, processes: int, capacity: float, seed: int) -> None:
        self.fleet = Fleet(server, f"bound{next(_names)}", capacity=capacity)
        self.shares = [self.fleet.make() for _ in range(processes)]
        self.asks: list[tuple[float, PendingGrant]] = []
        self.events: list[Happened] = []
        self.dice = Random(seed)

    def success(self, share: ProcessShare, now: float) -> None:
        """Let a process have some successes."""
        for _ in range(self.dice.choice([1, 5, 40])):
            share.put()
            self.events.append(Happened(now, earned=share.deposit))

    def failure(self, share: ProcessShare, now: float) -> None:
        """Let a process want a retry; an answer that is late waits in `asks`."""
        answer = share.ask()
        if answer is True:
            self.events.append(Happened(now, retry=MICRO))
        elif isinstance(answer, PendingGrant):
            if answer.wait(0) is None:
                self.asks.append((now, answer))
            elif answer.look():
                self.events.append(Happened(now, retry=MICRO))

    def backoff_ends(self, now: float) -> None:
        """End the backoff of the oldest ask; one in three runs was cancelled."""
        if self.asks:
            sent, answer = self.asks.pop(0)
            if self.dice.random() < 1 / 3:
                answer.give_up()
            elif answer.look():
                self.events.append(Happened(sent, retry=MICRO))
            elif answer.end():
                self.events.append(Happened(now, retry=MICRO))

    def exit(self, index: int) -> None:
        """End a process, which pays in, and start another one."""
        self.shares[index].pay_in(last=True)
        self.kill(index)

    def kill(self, index: int) -> None:
        """End a process at once, and start another one."""
        self.shares[index] = self.fleet.make()

    def flush(self, now: float) -> None:
        """Lose the bucket."""
        self.fleet.server.run(b"DEL", self.fleet.key)
        self.events.append(Happened(now, flush=1))


STEPS = (
    "success",
    "success",
    "failure",
    "failure",
    "failure",
    "ends",
    "exit",
    "kill",
    "flush",
    "slow",
    "fast",
    "down",
    "up",
)


@given(
    processes=st.integers(1, 5),
    capacity=st.sampled_from([1, 3.5, 10, 40]),
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 4), st.sampled_from([0, 0, 0.01, 0.4, 1, 3, 30])),
        min_size=20,
        max_size=120,
    ),
    seed=st.integers(0, 1000),
)
def test_the_bound_holds(
    server: Server, processes: int, capacity: float, steps: list[tuple[str, int, float]], seed: int
) -> None:
    """In every window: retries <= r S(window) + C + P + r S(the 5 s before) + F C / 10, whatever happens."""
    with virtual_time(seed) as clock:
        clock.advance(1000)
        history = History(server, processes, capacity, seed)
        for step, number, seconds in steps:
            clock.advance(seconds)
            index, now = number % processes, clock.elapsed
            match step:
                case "success":
                    history.success(history.shares[index], now)
                case "failure":
                    history.failure(history.shares[index], now)
                case "ends":
                    history.backoff_ends(now)
                case "exit":
                    history.exit(index)
                case "kill":
                    history.kill(index)
                case "flush":
                    history.flush(now)
                case "slow" | "fast":
                    server.latency = 0.2 if step == "slow" else 0.0
                case _:
                    server.is_down = step == "down"
            assert 0 <= history.fleet.level() <= micro(capacity)
    events = sorted(history.events)
    for start in {event.at for event in events}:
        retries, allowed = 0, micro(capacity) + history.fleet.processes * MICRO
        allowed += sum(event.earned for event in events if start - WINDOW <= event.at < start)
        for event in events:
            if event.at >= start:
                allowed += event.earned + event.flush * micro(capacity) // 10
                retries += event.retry
        assert retries <= allowed


@pytest.mark.parametrize("share_of_failures", [0.03, 0.06, 0.15])
@pytest.mark.parametrize("calls", [3, 6])
def test_processes_that_live_shortly_get_what_one_bucket_grants(
    server: Server, calls: int, share_of_failures: float
) -> None:
    """They get at least 0.95 of it, although none of them ever holds a whole token; with one command at its end."""
    with virtual_time(seed=1) as clock:
        dice, capacity = Random(2), 20
        fleet, one = Fleet(server, f"short{next(_names)}", capacity=capacity), Budget.brooker(capacity / 10)
        one._state[1] = micro(capacity)  # both start with a tenth
        shared = alone = failures = 0
        before = server.commands
        for _ in range(600):
            share = fleet.make()
            for _ in range(calls):
                clock.advance(0.01)
                if dice.random() >= share_of_failures:
                    one.put(retried=False)
                    share.put()
                    continue
                failures += 1
                alone += one.take()
                shared += retried(share)
            share.pay_in()
    assert shared >= 0.95 * alone > 0
    assert server.commands - before <= 600 + failures


def test_a_quiet_fleet_keeps_the_bucket_full(server: Server) -> None:
    """Eight processes without a failure for a minute have at least what one bucket grants when all calls fail."""
    with virtual_time(seed=1) as clock:
        fleet = Fleet(server, f"quiet{next(_names)}", capacity=100)
        shares = [fleet.make() for _ in range(8)]
        before = server.commands
        for turn in range(60 * 8 * 10):
            clock.advance(1 / 80)
            shares[turn % 8].put()
        assert server.commands - before < 60
        granted = 0
        for turn in range(20 * 8 * 10):
            clock.advance(1 / 80)
            granted += retried(shares[turn % 8])
    assert 100 <= granted <= 100 + 8 + 0.1 * 5 * 80
