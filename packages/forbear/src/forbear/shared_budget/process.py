"""`ProcessShare`: one process's part in a shared bucket: its credit, its link to the server, and what is on its way."""

import time
from _thread import RLock
from collections import deque
from collections.abc import Callable
from typing import Protocol

from forbear.core.budget import MICRO
from forbear.core.dataclass import dataclass
from forbear.core.events import BudgetDegraded, BudgetRestored
from forbear.run.runtime import current
from forbear.shared_budget.script import BucketState, Command, Credit, LinkFailed, command, parse

LOST = 1.0
"""Seconds after which an ask without an answer is given up."""
_REMEMBERED = 1.0
"""Seconds for which a refusal is remembered, times a random number between 0.5 and 1.5."""

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds; a pause doubles from failure to failure, and half of it is random."""
_PAUSE_SHARE = 0.8
"""The longest pause as a share of the credit window: a process is back within a window, before its credit expires."""

SLICE = 0.001
"""The longest single wait in seconds: another thread may take the answer off the connection meanwhile."""

PAYMENT = 60.0
"""Seconds between payments of unused surplus into a full bucket, times 0.5 to 1.5 at random.

Into a bucket that is less than nine tenths full, they come once in a credit window. Without them, eight processes got
54 retries after a quiet minute, where one bucket grants 100.
"""

Notify = Callable[[BudgetDegraded | BudgetRestored], None]


class Link(Protocol):
    """The protocol of a connection to the server; LinkFailed says that what was sent is lost."""

    def send(self, command: Command, now: float) -> None:
        """Send a command without waiting."""
        ...

    def receive(self) -> list[object]:
        """Return the responses that have arrived, in the order of the commands; never wait."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait until there may be a response, for at most so many real seconds."""
        ...

    def close(self) -> None:
        """Drop the connection; the next command opens a new one."""
        ...


class Health:
    """The state of the server as one process sees it: `degraded` or not, since `since`, left alone until `until`.

    Times are monotonic, in seconds. Before `until` nothing is sent. After it, one ask at a time probes the server. A
    pause is at most four fifths of the credit `window`, but at least SHORTEST_PAUSE.
    """

    __slots__ = ("_failures", "_longest", "degraded", "since", "until")

    def __init__(self, window: float) -> None:
        self._longest = min(_PAUSE_SHARE * window, LONGEST_PAUSE)
        self._failures = 0
        self.degraded = False
        self.since = 0.0
        self.until = float("-inf")

    def failed(self, now: float, u: float) -> bool:
        """Begin a pause at `now`, and return whether the server was well before; `u` is random in [0, 1)."""
        step = min(2 * SHORTEST_PAUSE * 2 ** min(self._failures, 10), self._longest)
        self._failures += 1
        self.until = now + max(step * (1 + u) / 2, SHORTEST_PAUSE)
        was_well, self.degraded = not self.degraded, True
        if was_well:
            self.since = now
        return was_well

    def succeeded(self) -> None:
        """Note an answer of the server: it is left alone no longer."""
        self._failures = 0
        self.degraded = False
        self.until = float("-inf")


@dataclass(slots=True)
class PendingGrant:
    """A command of `share` on its way, and its answer; see `forbear.run.late_grant.LateAnswer` for the methods.

    It was `sent` at a monotonic time, for a retry or (`pays` only) without one. `answer` is None until it is known; a
    lost ask is a refusal. It is `overdue` once its run has stopped looking for it. A run that ended without the answer
    sets `left`: a grant then makes the own token whole. Example: see `LocalBucket`.
    """

    share: "ProcessShare"
    sent: float
    pays: bool
    answer: bool | None = None
    overdue: bool = False
    left: bool = False

    def look(self) -> bool | None:
        if self.answer is None:
            self.share.collect()
        return self.answer

    def wait(self, seconds: float) -> bool | None:
        until = time.monotonic() + seconds
        while (answer := self.look()) is None:
            left = until - time.monotonic()
            if left <= 0:
                self.overdue = True
                return None
            self.share.link.wait(min(left, SLICE))
        return answer

    def end(self) -> bool:
        answer = self.look()
        if answer is None:
            answer = self.share.spend()
            self.give_up()
        return answer

    def give_up(self) -> None:
        with self.share.lock:
            self.overdue = self.left = True
            if self.answer:
                self.share.credit.refill()


class ProcessShare:
    """The part of one process in the bucket at `key`: `capacity` and `deposit` are in micro-tokens, `window` seconds.

    `name` is the name of the budget for events, which `notify` gets. It is safe to share between threads. No method
    but `wait` waits, and none raises an error. A subclass may have its own clock (`now`) and randomness (`random`).
    Example: see `LocalBucket`.
    """

    __slots__ = ("_busy", "_news", "_notify", "_payment", "_refused_until", "_under_way", "capacity", "credit",
                 "deposit", "health", "key", "link", "lock", "name", "sent")  # fmt: skip

    def __init__(
        self, link: Link, name: str, key: bytes, capacity: int, deposit: int, window: float, notify: Notify
    ) -> None:
        self.link = link
        self.name = name
        self.key = key
        self.capacity = capacity
        self.deposit = deposit
        self.credit = Credit(window)
        self.health = Health(window)
        self.sent = 0  # commands, for measurements
        self._notify = notify
        self.lock = RLock()
        self._busy = False  # with the link: a signal handler may come back here in the same thread
        self._under_way: deque[PendingGrant] = deque()
        self._refused_until = self._payment = float("-inf")
        self._news: list[BudgetDegraded | BudgetRestored] = []

    def put(self) -> None:
        """Count a success; now and then, send unused surplus, without waiting."""
        with self.lock:
            credit, deposit = self.credit, self.deposit
            if credit.own + deposit <= MICRO and not self._under_way:  # nearly always; needs no clock
                credit.own += deposit
                return
            now = self.now()
            self._collect(now)
            credit.earn(deposit, now, holds=bool(self._under_way))
            if now >= self._payment:
                u, first = self.random(), self._payment < 0
                self._payment = now + (u * credit.window if first else PAYMENT * (0.5 + u))
                if not (first or self._under_way):
                    self._send(now, 0, credit.hand_over_surplus)
        if self._news:
            self._publish()

    def ask(self) -> bool | PendingGrant:
        """Take the own token and return True, or ask the shared bucket; False if it must not be asked now."""
        with self.lock:
            now = self.now()
            self._collect(now)
            result = self.credit.spend() or self._send(now, MICRO, self.credit.hand_over) or False
        self._publish()
        return result

    def spend(self) -> bool:
        """Take the own token for a retry and return True; False if it is not whole."""
        with self.lock:
            return self.credit.spend()

    def collect(self) -> bool:
        """Take the answers that have arrived; return whether one is still to come.

        That is False in a signal handler that has interrupted this object.
        """
        with self.lock:
            self._collect(self.now())
            owed = bool(self._under_way) and not self._busy
        self._publish()
        return owed

    def pay_in(self, *, last: bool = False) -> PendingGrant | None:
        """Pay in all credit, as a process that ends does; return what was sent, or None.

        Nothing is sent while the server is left alone. While an answer is overdue, only the `last` payment is sent.
        """
        with self.lock:
            now = self.now()
            self._collect(now)
            sent = self._send(now, 0, self.credit.hand_over, last=last)
        self._publish()
        return sent

    def close(self) -> None:
        """Close the link."""
        with self.lock:
            self.link.close()

    def now(self) -> float:
        """Return the monotonic time in seconds."""
        return current.clock()

    def random(self) -> float:
        """Return a random number, uniform in [0, 1)."""
        return current.get().random()

    def _send(self, now: float, cost: int, take: Callable[[float], int], *, last: bool = False) -> PendingGrant | None:
        """Send the credit that `take` hands over, and the ask for a retry of `cost`; None if nothing is sent.

        That is so while the server is left alone, and, unless it is the `last` command, while an ask is overdue or the
        first one after a pause has no answer; after a refusal, if the credit cannot pay; and without a cost or credit.
        """
        if self._busy or now < self.health.until:
            return None
        if not last and self._under_way and (self.health.degraded or any(sent.overdue for sent in self._under_way)):
            return None
        if cost and now < self._refused_until and self.credit.total(now) < min(cost, self.capacity):
            return None
        deposit = take(now)
        if not (cost or deposit):
            return None
        sent = PendingGrant(self, now, pays=not cost)
        self._busy = True
        try:
            self._under_way.append(sent)
            self.sent += 1
            self.link.send(command(self.key, self.capacity, deposit, cost), now)
        except Exception as error:
            self._degrade(now, error)
            return None
        finally:
            self._busy = False
        return sent

    def _collect(self, now: float) -> None:
        """Take the answers that have arrived; after an error, or without an answer for too long, begin a pause."""
        if self._busy or not self._under_way:
            return
        self._busy = True
        try:
            for response in self.link.receive():
                state = parse(response)  # first: an ask whose answer is nonsense is lost with the others
                self._settle(self._under_way.popleft(), state, now)
            if self._under_way and now - self._under_way[0].sent >= LOST:
                raise LinkFailed(f"the server did not answer within {LOST:g} s")
        except Exception as error:
            self._degrade(now, error)
        finally:
            self._busy = False

    def _settle(self, sent: PendingGrant, state: BucketState, now: float) -> None:
        sent.answer = state.granted
        if self.health.degraded:
            self._news.append(BudgetRestored(f"shared budget {self.name}", now - self.health.since))
        self.health.succeeded()
        if sent.left and state.granted:
            self.credit.refill()
        if sent.pays and state.tokens < 0.9 * self.capacity:
            self._payment = now + self.credit.window * (0.5 + self.random())
        if not sent.pays:
            memory = _REMEMBERED * (0.5 + self.random())
            self._refused_until = float("-inf") if state.granted else now + memory

    def _degrade(self, now: float, error: Exception) -> None:
        """Give up all that is on its way, and leave the server alone for a while.

        An error that this package does not know must not fail the user's call either.
        """
        self.link.close()
        for sent in self._under_way:
            sent.answer = False
        self._under_way.clear()
        is_new = self.health.failed(now, self.random())
        if self._payment > 0:
            self._payment = min(self._payment, self.health.until)  # a server that has lost its bucket needs it soon
        if is_new:
            text = str(error) if isinstance(error, LinkFailed) else f"it failed: {type(error).__name__}"
            self._news.append(BudgetDegraded(f"shared budget {self.name}", text, self.health.until - now))

    def _publish(self) -> None:
        """Notify the listeners of what happened, outside the lock."""
        while self._news:
            try:
                event = self._news.pop(0)
            except IndexError:  # another thread was faster
                return
            self._notify(event)
