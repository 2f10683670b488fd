"""Runs with a shared budget, in all nine ways: the answer comes at once, late or never, and no call waits for it."""

import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from redis import Redis

from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Recovered, Scheduled
from forbear.core.report import report
from forbear.policy import Policy
from forbear.shared_budget.budget import SharedBudget
from forbear.shared_budget.script import SCRIPT
from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.redis.proxy import FORWARD, HANG, Command, Fate, proxy
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.drivers import ASYNC, SYNC, Driver

DRIVERS = pytest.mark.parametrize("drive", [*SYNC, *ASYNC], ids=lambda driver: driver.name)


@pytest.fixture(scope="module")
def path() -> Generator[str]:
    """Run one server for all tests of this module; it knows the script, so each ask is one command."""
    with valkey_server() as running:
        with Redis(unix_socket_path=running) as admin:
            admin.script_load(SCRIPT.decode())
        yield running


class Gate:
    """A proxy's script that holds each ask until `opened`; then it has the `fate`."""

    def __init__(self, fate: Fate = FORWARD) -> None:
        self.opened = threading.Event()
        self.fate = fate

    def __call__(self, command: Command) -> Fate:
        self.opened.wait(10)
        return self.fate


class Watched:
    """A policy with a shared budget, and the events that its listener saw; `on_scheduled` is called with each retry."""

    def __init__(self, url: str, name: str, on_scheduled: Callable[["Watched"], None] | None = None, **options: Any):
        self.events: list[Event] = []
        self.budget = SharedBudget(url, name, on_event=self.note, **options)
        self.policy: Policy = BUSY.with_budget(self.budget).with_on_event(self.note)
        self._on_scheduled = on_scheduled

    def note(self, event: Event) -> None:
        """Note an event."""
        self.events.append(event)
        if isinstance(event, Scheduled) and self._on_scheduled is not None:
            self._on_scheduled(self)

    @property
    def names(self) -> list[str]:
        """The names of the events, without `Failed`."""
        return [type(event).__name__ for event in self.events if not isinstance(event, Failed)]

    def close(self) -> None:
        """Close the connection."""
        self.budget._share.close()


@pytest.mark.usefixtures("patient")
@DRIVERS
def test_a_grant_at_once(drive: Driver, path: str) -> None:
    """The waits are those of the backoff, and the retry is made."""
    watched = Watched(f"unix://{path}", f"granted {drive.name}", capacity=20)
    outcome = drive(watched.policy, Busy, Busy, "done")
    assert (outcome.value, outcome.slept) == ("done", [1, 1])
    assert watched.names == ["Scheduled", "Scheduled", "Recovered"]
    watched.close()


@pytest.mark.usefixtures("patient")
@DRIVERS
def test_a_refusal_at_once_ends_the_call(drive: Driver, path: str) -> None:
    """Nothing is waited for, and the error and its report are those of any refusal by a budget."""
    watched = Watched(f"unix://{path}", f"refused {drive.name}", capacity=10)
    outcome = drive(watched.policy, Busy("first"), Busy("second"))
    assert outcome.error is not None
    assert outcome.error.args == ("second",)
    assert outcome.slept == [1]
    assert watched.names == ["Scheduled", "GaveUp"]
    given_up = report(outcome.error)
    assert given_up is not None
    assert (given_up.count, given_up.text) == (2, "the retry budget is used up")
    watched.close()


def _arrives_while_waiting(gate: Gate) -> Callable[[Watched], None]:
    def opened(watched: Watched) -> None:
        gate.opened.set()
        watched.budget._share.link.wait(10)

    return opened


@DRIVERS
@pytest.mark.parametrize("capacity", [10, 5], ids=["granted", "refused"])
def test_an_answer_during_the_backoff(drive: Driver, path: str, capacity: float) -> None:
    """The run goes on when its backoff ends, or gives up early, with the error of the last attempt."""
    gate = Gate()
    with proxy(path, gate) as seen:
        url, name = f"redis://127.0.0.1:{seen.port}", f"late {drive.name} {capacity}"
        watched = Watched(url, name, _arrives_while_waiting(gate), capacity=capacity)
        outcome = drive(watched.policy, Busy, "done")
        watched.close()
    if capacity == 10:
        assert outcome.slept == [0.25, 0.75]
        assert (outcome.value, watched.names) == ("done", ["Scheduled", "Recovered"])
    else:
        assert outcome.slept == [0.25]
        assert isinstance(outcome.error, Busy)
        assert watched.names == ["Scheduled", "GaveUp"]
        given_up = report(outcome.error)
        assert given_up is not None
        assert (given_up.count, len(given_up.attempts), given_up.attempts[0].delay) == (1, 1, None)


@DRIVERS
def test_no_answer(drive: Driver, path: str) -> None:
    """The retry is refused when its backoff ends; one event says that the budget has lost its server."""
    gate = Gate(HANG)
    gate.opened.set()
    with proxy(path, gate) as seen:
        watched = Watched(f"redis://127.0.0.1:{seen.port}", "hung")
        outcome = drive(watched.policy, Busy, "done")
        again = drive(watched.policy, Busy, "done")
        watched.close()
    assert isinstance(outcome.error, Busy)
    assert isinstance(again.error, Busy)
    assert (outcome.elapsed, again.elapsed) == (1, 0)
    assert watched.names == ["Scheduled", "BudgetDegraded", "GaveUp", "GaveUp"]
    degraded = next(event for event in watched.events if isinstance(event, BudgetDegraded))
    assert (degraded.operation, degraded.text) == ("shared budget hung", "the server did not answer within 1 s")
    assert 1 <= degraded.pause <= 30


def test_own_credit_needs_no_server(path: str) -> None:
    """Ten successes pay for a retry without a word to the server."""
    with proxy(path, lambda _: FORWARD) as seen:
        watched = Watched(f"redis://127.0.0.1:{seen.port}", "own")
        for _ in range(10):
            assert watched.policy.call(lambda: "fine") == "fine"
        assert watched.budget.take()
        assert (seen.connections, seen.asked) == (0, [])
        watched.close()


def test_the_events_of_a_call() -> None:
    """A budget whose server is away degrades once, and the calls get their own errors."""
    watched = Watched("unix:///nowhere/at/all", "away")
    for drive in SYNC:
        outcome = drive(watched.policy, Busy, "done")
        assert isinstance(outcome.error, Busy)
        assert outcome.slept == []
    assert watched.names == ["BudgetDegraded", "GaveUp", "GaveUp", "GaveUp"]
    assert not [event for event in watched.events if isinstance(event, BudgetRestored | Recovered)]
    assert len([event for event in watched.events if isinstance(event, GaveUp)]) == 3
