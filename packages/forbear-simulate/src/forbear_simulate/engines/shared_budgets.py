"""`forbear.SharedBudget` in the exact engine: its own code, over a bucket in memory in the place of the server."""

from random import Random

from forbear import Event, Verdict
from forbear.adapters import (
    MICRO_PER_TOKEN,
    LocalBucket,
    PendingGrant,
    ProcessShare,
    micro_tokens,
)
from forbear_simulate.scenario.budgets import SharedBucket

_KEY = b"bucket"


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


class SharedBudgets:
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

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return True: first attempts are free."""
        return True

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count nothing: failures are free, too."""

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry if the process or the bucket grants it, otherwise None."""
        share = self._share(client, now)
        answer = share.ask()
        granted = answer.end() if isinstance(answer, PendingGrant) else answer
        return MICRO_PER_TOKEN if granted else None

    def wait(self, client: int, now: float, delay: float) -> None:
        """Count nothing: a granted retry that waits is paid for."""

    def release(self, client: int, now: float, cost: int) -> None:
        """Count nothing: attempts under way are free."""

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
