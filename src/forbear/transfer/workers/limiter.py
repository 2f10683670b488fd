"""Limiter: how many transfers may be under way, found by trying. It knows neither transfers nor their errors."""

import asyncio

START = 16


class Limiter:
    """Grows with success and is halved when the server asks to slow down: `limit` may be under way, `maximum` at most.

    It doubles with every round until the first time, then grows by one a round.
    """

    def __init__(self, maximum: int, start: int = START) -> None:
        if maximum < 1:
            raise ValueError(f"`parallel` must be at least 1, got {maximum}")
        self._maximum = maximum
        self._limit = float(min(start, maximum))
        self._grown = asyncio.Event()
        self.cuts = 0
        """How often it was halved."""
        self.lifted = False
        """Whether all are let go, for there is nothing left to limit."""

    @property
    def limit(self) -> int:
        """How many may be under way."""
        return int(self._limit)

    def succeeded(self) -> None:
        """One came through without being told to slow down."""
        if self._limit >= self._maximum:
            return
        before = int(self._limit)
        self._limit = min(self._maximum, self._limit + (1 / self._limit if self.cuts else 1))
        if int(self._limit) > before:
            self._wake()

    def throttled(self, seen: int) -> int:
        """One was told to slow down; returns how often that has led to a cut by now.

        `seen` is that number when its attempt began: the cut that an attempt has not seen was made for it as well, so
        that those who were under way together halve the limit once.
        """
        if seen == self.cuts:
            self.cuts += 1
            self._limit = max(1.0, self._limit / 2)
        return self.cuts

    async def admitted(self, number: int) -> None:
        """Wait until so many may be under way, counted from 0."""
        while number >= self._limit and not self.lifted:
            await self._grown.wait()

    def lift(self) -> None:
        """Let all go that wait."""
        self.lifted = True
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown.clear()
