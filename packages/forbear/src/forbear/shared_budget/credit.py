"""`Credit`: what the successes of one process have earned, and have not spent or paid in yet."""

from forbear.core.budget import MICRO

SLOTS = 10
"""The slots of the credit window, each a tenth of it."""


class Credit:
    """The credit of one process, in micro-tokens: at most one token of its own, and a surplus for the shared bucket.

    The surplus expires `window` seconds after it was earned, or up to a tenth of the window sooner, never later. So a
    process holds at most one token and what it earned in the last window. A credit has no clock and no lock. Times are
    monotonic, in seconds.
    """

    __slots__ = ("_newest", "_slots", "own", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.own = 0
        self._slots = [0] * SLOTS
        self._newest = 0

    def earn(self, amount: int, now: float, *, holds: bool = False) -> None:
        """Add `amount`: to the own token until it is whole, else to the surplus.

        With `holds`, all of it is surplus: the process waits for a token of the shared bucket, and must not hold two.
        """
        if not holds:
            kept = min(amount, MICRO - self.own)
            self.own += kept
            amount -= kept
        if amount:
            self._slots[self._turn(now)] += amount

    def spend(self) -> bool:
        """Take the own token for a retry and return True; False if it is not whole."""
        if self.own < MICRO:
            return False
        self.own -= MICRO
        return True

    def refill(self) -> None:
        """Make the own token whole: a grant of the shared bucket has come too late for its run."""
        self.own = MICRO

    def total(self, now: float) -> int:
        """Return all that has not expired, the own part too."""
        self._turn(now)
        return self.own + sum(self._slots)

    def hand_over(self, now: float) -> int:
        """Take all that has not expired, the own part too, and return it; the process pays it in."""
        own, self.own = self.own, 0
        return own + self.hand_over_surplus(now)

    def hand_over_surplus(self, now: float) -> int:
        """Take the surplus that has not expired, and return it."""
        self._turn(now)
        amount = sum(self._slots)
        self._slots = [0] * SLOTS
        return amount

    def _turn(self, now: float) -> int:
        """Clear the slots that have expired, and return the index of the current one."""
        newest = int(now / self.window * SLOTS)
        for number in range(max(self._newest, newest - SLOTS) + 1, newest + 1):
            self._slots[number % SLOTS] = 0
        self._newest = max(self._newest, newest)
        return self._newest % SLOTS
