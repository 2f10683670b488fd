"""The yardsticks, written without a library: L1 only catches, L2 is careful. They know no contender."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from functools import wraps
from random import random
from time import monotonic
from types import TracebackType

from benchmarks.work import ATTEMPTS, ERROR, AsyncWork, Work


def catch(function: Work) -> Work:
    """L1: try again, at once and for ever."""

    @wraps(function)
    def retried(*args: bytes, **kwargs: bytes) -> bytes:
        while True:
            try:
                return function(*args, **kwargs)
            except ERROR:
                continue

    return retried


def acatch(function: AsyncWork) -> AsyncWork:
    """L1: try again, at once and for ever."""

    @wraps(function)
    async def retried(*args: bytes, **kwargs: bytes) -> bytes:
        while True:
            try:
                return await function(*args, **kwargs)
            except ERROR:
                continue

    return retried


def careful(
    function: Work,
    on: type[Exception] = ERROR,
    attempts: int = ATTEMPTS,
    timeout: float = 60,
    initial: float = 1,
    maximum: float = 64,
) -> Work:
    """L2: exponential backoff with full jitter, under a limit of attempts and a deadline."""

    @wraps(function)
    def retried(*args: bytes, **kwargs: bytes) -> bytes:
        deadline = monotonic() + timeout
        attempt = 1
        step = initial
        while True:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                delay = random() * step
                if not isinstance(error, on) or attempt == attempts or monotonic() + delay > deadline:
                    raise
            time.sleep(delay)  # noqa: TID251 - a yardstick waits by itself
            attempt += 1
            step = min(2 * step, maximum)

    return retried


def acareful(
    function: AsyncWork,
    on: type[Exception] = ERROR,
    attempts: int = ATTEMPTS,
    timeout: float = 60,
    initial: float = 1,
    maximum: float = 64,
) -> AsyncWork:
    """L2: exponential backoff with full jitter, under a limit of attempts and a deadline."""

    @wraps(function)
    async def retried(*args: bytes, **kwargs: bytes) -> bytes:
        deadline = monotonic() + timeout
        attempt = 1
        step = initial
        while True:
            try:
                return await function(*args, **kwargs)
            except Exception as error:
                delay = random() * step
                if not isinstance(error, on) or attempt == attempts or monotonic() + delay > deadline:
                    raise
            await asyncio.sleep(delay)  # noqa: TID251 - a yardstick waits by itself
            attempt += 1
            step = min(2 * step, maximum)

    return retried


class Try:
    """One attempt of the iterator form: swallows a transient error, unless it is the last attempt."""

    __slots__ = ("again", "last")

    def __init__(self, last: bool) -> None:
        self.again = False
        self.last = last

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.again = isinstance(error, ERROR) and not self.last
        return self.again


class TimedTry(Try):
    """An attempt that is also the last one if the wait after it would pass the deadline."""

    __slots__ = ("deadline", "delay")

    def __init__(self, last: bool, delay: float, deadline: float) -> None:
        super().__init__(last)
        self.delay = delay
        self.deadline = deadline

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.again = isinstance(error, ERROR) and not self.last and monotonic() + self.delay <= self.deadline
        return self.again


def bare_tries(attempts: int = ATTEMPTS) -> Iterator[Try]:
    """A bare generator of context managers: no wait, no deadline."""
    for number in range(1, attempts + 1):
        attempt = Try(number == attempts)
        yield attempt
        if not attempt.again:
            return


async def abare_tries(attempts: int = ATTEMPTS) -> AsyncIterator[Try]:
    """A bare generator of context managers: no wait, no deadline."""
    for number in range(1, attempts + 1):
        attempt = Try(number == attempts)
        yield attempt
        if not attempt.again:
            return


def careful_tries(
    attempts: int = ATTEMPTS, timeout: float = 60, initial: float = 1, maximum: float = 64
) -> Iterator[Try]:
    """The same with L2's backoff and deadline."""
    deadline = monotonic() + timeout
    step = initial
    for number in range(1, attempts + 1):
        attempt = TimedTry(number == attempts, random() * step, deadline)
        yield attempt
        if not attempt.again:
            return
        time.sleep(attempt.delay)  # noqa: TID251 - a yardstick waits by itself
        step = min(2 * step, maximum)


async def acareful_tries(
    attempts: int = ATTEMPTS, timeout: float = 60, initial: float = 1, maximum: float = 64
) -> AsyncIterator[Try]:
    """The same with L2's backoff and deadline."""
    deadline = monotonic() + timeout
    step = initial
    for number in range(1, attempts + 1):
        attempt = TimedTry(number == attempts, random() * step, deadline)
        yield attempt
        if not attempt.again:
            return
        await asyncio.sleep(attempt.delay)  # noqa: TID251 - a yardstick waits by itself
        step = min(2 * step, maximum)
