"""The shared budget on a real Valkey over loopback: a success, a retry on own credit, and an ask."""

import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from benchmarks.measure import Effort, race, repeated
from benchmarks.redis_clients import running_server
from benchmarks.table import OURS, Table, Target
from forbear.budgets import SharedBudget
from forbear.core.budget import MICRO

_PUT, _TAKE, _ASK = f"{OURS}, put", f"{OURS}, take from own credit", f"{OURS}, ask the server"
_CPU_ASKS = 2_000
_PROCESSES, _SUCCESSES, _FAILURES = 20, 2_000, 0.05


def shared(effort: Effort) -> Table:
    """The cost of a success, of a retry on own credit, and of an ask."""
    with running_server() as port:
        url = f"redis://127.0.0.1:{port}/0"
        one, two, three = (SharedBudget(url, f"{number}", capacity=10**9, deposit=0.000001) for number in range(3))
        credit = two._share.credit

        def take() -> None:
            credit.own = MICRO
            two.take()

        _fill(three)
        ask = _asking(three)
        put = repeated(lambda: one.put(retried=False))
        samples = race({_PUT: put, _TAKE: repeated(take), _ASK: repeated(ask)}, effort)
        server = _server_seconds(three, ask)
        per_retry = _commands_per_retry(url)
        for budget in (one, two, three):
            budget._share.close()
    notes = (
        f"an ask takes {1e6 * server:.0f} us of the server's CPU; 1,000 a second are {1e5 * server:.1f} % of a core",
        f"{per_retry:.2f} commands per granted retry: {_PROCESSES} processes, {100 * _FAILURES:.0f} % of calls fail",
        "an own token needs no command, and a success never waits for one",
    )
    targets = (Target(_PUT, 0.5), Target(_TAKE, 2), Target(_ASK, 100))
    return Table("shared-budget", "a retry budget on Valkey, shared", "us", 1e6, samples, (), targets, notes=notes)


def _asking(budget: SharedBudget) -> Callable[[], None]:
    """Return a function that asks the server for one retry, and checks that it is granted."""

    def ask() -> None:
        budget._share.credit.own = 0
        if not budget.take() and budget._share.health.degraded:
            raise RuntimeError("the server of the benchmark is away")

    return ask


def _fill(budget: SharedBudget) -> None:
    """Put a hundred million tokens into the bucket."""
    sent: Any = budget._share._send(time.monotonic(), 0, lambda now: 10**8 * MICRO)
    while sent.wait(1) is None:
        """The server is slow."""


def _server_seconds(budget: SharedBudget, ask: Callable[[], None]) -> float:
    """Return the seconds of CPU that the server needs for an ask."""
    from redis import Redis

    assert budget._address is not None
    with Redis(port=budget._address.port) as opened:
        client: Any = opened
        before = _cpu(client.info("cpu"))
        for _ in repeat(None, _CPU_ASKS):
            ask()
        return (_cpu(client.info("cpu")) - before) / _CPU_ASKS


def _cpu(info: dict[str, float]) -> float:
    return info["used_cpu_user"] + info["used_cpu_sys"]


def _commands_per_retry(url: str) -> float:
    """Return the commands for each granted retry of a fleet in which some of the calls fail."""
    budgets = [SharedBudget(url, "fleet") for _ in range(_PROCESSES)]
    every, retries = round(1 / _FAILURES), 0
    for number in range(_SUCCESSES):
        for budget in budgets:
            if number % every:
                budget.put(retried=False)
            else:
                retries += budget.take()
    sent = sum(budget._share.sent for budget in budgets)
    for budget in budgets:
        budget._share.close()
    return sent / max(retries, 1)
