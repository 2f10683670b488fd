"""`forbear.budgets.SharedBudget` in simulations.

The exact engine runs its own code, over a bucket in memory in the place of the server. The cohort engine has one
bucket, and the means of what its processes hold.
"""

from math import ceil, exp
from random import Random

from forbear.adapters import (
    MICRO_PER_TOKEN,
    PAYMENT_SECONDS,
    LocalBucket,
    PendingGrant,
    ProcessShare,
    micro_tokens,
)
from forbear.events import Event
from forbear.verdicts import Verdict
from forbear_simulate.engines.budgets.base import FleetBudget, MeanBudget, SimulatedRule, SteadyState
from forbear_simulate.engines.budgets.counts import WindowSums
from forbear_simulate.scenario.budgets import SharedBucket

_KEY = b"bucket"
_WITH, _WITHOUT = 0, 1  # the surplus of processes with an own token, and of those that have used it
_FULL = 0.9  # of the capacity: from there on, processes pay in rarely
_ROUNDS = 8  # for one ask of each process
_MOST = 64
_NONE = 1e-9


class SimulatedSharedBucket(SimulatedRule):
    """One bucket for the whole fleet, and the own tokens and the surplus of its processes."""

    rule: SharedBucket

    def make_exact(self, clients: int, seed: int) -> FleetBudget:
        """Return the processes, with so many `clients` in each."""
        return SharedBudgets(self.rule, clients, seed=seed)

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the bucket and the means of so many processes."""
        return _MeanShared(self.rule, groups)

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return the deposits of the successes, those of all processes together."""
        return (1 - state.failing) * self.rule.deposit


class _Link:
    """The link of one process: the bucket executes each command at once, and the response is there."""

    def __init__(self, bucket: LocalBucket) -> None:
        self._bucket = bucket
        self._responses: list[object] = []

    def send(self, command: tuple[bytes, ...], now: float) -> None:
        """Execute a command."""
        self._responses.append(self._bucket.run((*command, b"%d" % round(1000 * now))))

    def receive(self) -> list[object]:
        """Return the responses."""
        responses, self._responses = self._responses, []
        return responses

    def wait(self, seconds: float) -> None:
        """Do nothing: every response is there."""

    def close(self) -> None:
        """Do nothing: the server is never away."""


class _Share(ProcessShare):
    """The share of one process, on the clock of the simulation."""

    __slots__ = ("_clock", "_dice")

    def __init__(self, rule: SharedBucket, bucket: LocalBucket, clock: list[float], dice: Random) -> None:
        capacity, deposit = micro_tokens(rule.capacity), micro_tokens(rule.deposit)
        super().__init__(_Link(bucket), "simulated", _KEY, capacity, deposit, rule.window, _unheard)
        self._clock = clock
        self._dice = dice

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._clock[0]

    def random(self) -> float:
        """Return the next random number of the simulation."""
        return self._dice.random()


def _unheard(event: Event) -> None:
    """Drop an event: nobody listens in a simulation."""


class SharedBudgets(FleetBudget):
    """The processes of a fleet with one SharedBudget, `clients` of the clients in each; the server is always well.

    A process is granted what a real one gets whose calls come in the same order. A simulated call comes to one of the
    clients by chance. The order matters, because what is paid into a full bucket is lost: after a healthy time, 20
    processes that fail in turn get 139 retries of a bucket of 100, by chance about 180, and with ten calls of each in a
    row about 260.
    """

    def __init__(self, rule: SharedBucket, clients: int = 1, *, seed: int = 0) -> None:
        self._rule = rule
        self._clients = clients
        self._bucket = LocalBucket()
        self._clock = [0.0]
        self._dice = Random(f"shared {seed}")
        self._shares: dict[int, _Share] = {}

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry if the process or the bucket grants it, otherwise None."""
        share = self._share(client, now)
        answer = share.ask()
        granted = answer.end() if isinstance(answer, PendingGrant) else answer
        return MICRO_PER_TOKEN if granted else None

    def succeeded(self, client: int, now: float, cost: int) -> None:
        """Count a success of a process."""
        self._share(client, now).put()

    def level(self, clients: int) -> float:
        """Return the share of tokens left in the bucket, without those of the processes."""
        capacity = micro_tokens(self._rule.capacity)
        return self._bucket.tokens(capacity) / capacity

    def _share(self, client: int, now: float) -> _Share:
        """Return the share of the process that a client is in, at `now`."""
        self._clock[0] = now
        number = client // self._clients
        share = self._shares.get(number)
        if share is None:
            share = self._shares[number] = _Share(self._rule, self._bucket, self._clock, self._dice)
        return share


class _MeanShared(MeanBudget):
    """A SharedBudget of many equal processes, to which the calls come by chance.

    That a process remembers a refusal for a second is left out: what it does not ask for, another one gets.
    """

    def __init__(self, rule: SharedBucket, processes: float) -> None:
        from forbear_simulate.engines.budgets.token_levels import TokenLevels  # the exact engine needs no numpy

        self._rule, self._processes = rule, processes
        self._tokens = rule.capacity / 10
        self._own = TokenLevels(1.0, (rule.deposit,), full=False)
        self._surplus = WindowSums(rule.window, 2)
        self._first: float = 1.0  # the shares of the processes that have not paid yet, pay often, and pay rarely
        self._often: float = 0.0
        self._rarely: float = 0.0
        self._began: float | None = None  # when there was surplus for the first time
        self._paid = 0.0  # the time of the last payments

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        if retries <= 0:
            return 0.0
        whole = self._own.full()
        granted = self._own.take(retries / self._processes, 1.0)
        if whole > 0:
            self._surplus.move(_WITH, _WITHOUT, now, min(granted / whole, 1.0))
        granted *= self._processes
        asks = retries - granted
        asking = (1 - self._own.full()) * self._processes
        rounds = min(ceil(_ROUNDS * asks / asking), _MOST) if asking > 0 else 0
        for _ in range(rounds):  # what one ask takes makes room for what the next one hands in
            granted += self._ask(now, asks / rounds, asking)
        return granted

    def _ask(self, now: float, asks: float, asking: float) -> float:
        """Hand in what the processes of so many asks hold, and return how many retries the bucket grants."""
        share = 1 - exp(-asks / asking)
        handed = self._own.empty(share) * self._processes + self._surplus.take(_WITHOUT, now, share)
        tokens = min(self._tokens + handed, self._rule.capacity - 1 + asks)
        granted = min(asks, tokens)
        self._tokens = tokens - granted
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        successes = (first + retried) / self._processes
        own, whole = self._own.mean(), self._own.full()
        self._own.add(successes, self._rule.deposit)
        if whole < 1:
            self._surplus.move(_WITHOUT, _WITH, now, max(self._own.full() - whole, 0.0) / (1 - whole))
        surplus = successes * self._rule.deposit - (self._own.mean() - own)
        if surplus > _NONE:
            self._surplus.add(_WITH, now, surplus * self._processes)
            self._pay(now)

    def level(self) -> float:
        return self._tokens / self._rule.capacity

    def _pay(self, now: float) -> None:
        """Pay in the surplus of the processes that are due: within a window at first, later by what they found."""
        if self._began is None:
            self._began = self._paid = now
        passed, self._paid = now - self._paid, now
        if passed <= 0:
            return
        window = self._rule.window
        left = self._began + window - now
        due = [
            self._first * (min(passed / left, 1.0) if left > 0 else 1.0),
            self._often * min(passed / window, 1.0),
            self._rarely * min(passed / PAYMENT_SECONDS, 1.0),
        ]
        paying = sum(due)
        self._tokens = min(self._tokens + self._surplus.take(_WITH, now, paying), self._rule.capacity)
        often = paying if self._tokens < _FULL * self._rule.capacity else 0.0
        self._first -= due[0]
        self._often += often - due[1]
        self._rarely += paying - often - due[2]
