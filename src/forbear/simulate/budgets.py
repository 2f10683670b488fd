"""The place where retry budgets plug into a simulation, and the budgets of rules of the core."""

from typing import Protocol

from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.verdict import Verdict


class FleetBudget(Protocol):
    """The budgets of a fleet. `client` is the number of the client, from 0, and `now` the virtual time in seconds.

    One object answers for all clients. Whether each client has its own counters, the clients of a process share theirs,
    or the whole fleet does, is up to it.
    """

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return whether a first attempt may be sent; `u` is a random number, uniform in [0, 1)."""
        ...

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count a failed attempt, before the decision about a retry."""
        ...

    def take(self, client: int, now: float, verdict: Verdict) -> float | None:
        """Return the cost of a retry that is granted, None if it is refused."""
        ...

    def release(self, client: int, now: float) -> None:
        """Count the end of an attempt."""
        ...

    def succeeded(self, client: int, now: float, cost: float) -> None:
        """Count a success; `cost` is that of the last retry of the call, 0 for a first attempt."""
        ...


class RuleBudgets:
    """Budgets of one rule of the core, one for every `clients` clients: 1, those of a process, or the whole fleet."""

    def __init__(self, rule: TokenBucket | Throttle | Ratio, clients: int = 1) -> None:
        self._rule = rule
        self._clients = clients
        self._states: dict[int, list[int]] = {}

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return True: these rules count retries only."""
        return True

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Do nothing: these rules count a failure when its retry is requested."""

    def take(self, client: int, now: float, verdict: Verdict) -> float | None:
        """Return 1.0 if the rule grants a retry, otherwise None."""
        return 1.0 if self._rule.take(self._state(client), now) else None

    def release(self, client: int, now: float) -> None:
        """Do nothing: these rules do not count attempts under way."""

    def succeeded(self, client: int, now: float, cost: float) -> None:
        """Count a success by the rule."""
        self._rule.put(self._state(client), now, retried=cost > 0)

    def _state(self, client: int) -> list[int]:
        """Return the counters of a client; they are made when they are first needed."""
        group = client // self._clients
        state = self._states.get(group)
        if state is None:
            state = self._states[group] = self._rule.start()
        return state
