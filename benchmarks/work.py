"""The work to be retried: as little as possible, so that what is measured is the retrying. It knows no contender."""

from collections.abc import Awaitable, Callable
from itertools import cycle

Work = Callable[[bytes], bytes]
AsyncWork = Callable[[bytes], Awaitable[bytes]]

ERROR = OSError  # what every contender is told to retry
ATTEMPTS = 5
KEY = b"key"


def steady() -> Work:
    """A function that always works."""

    def fetch(key: bytes) -> bytes:
        return key

    return fetch


def asteady() -> AsyncWork:
    """A coroutine function that always works."""

    async def fetch(key: bytes) -> bytes:
        return key

    return fetch


def flaky(failures: int = 3) -> Work:
    """A function that fails so many times, works once, and so on in turn."""
    fails = cycle([True] * failures + [False])

    def fetch(key: bytes) -> bytes:
        if next(fails):
            raise ConnectionResetError("reset by peer")
        return key

    return fetch


def aflaky(failures: int = 3) -> AsyncWork:
    """A coroutine function that fails so many times, works once, and so on in turn."""
    fetch_now = flaky(failures)

    async def fetch(key: bytes) -> bytes:
        return fetch_now(key)

    return fetch


def abroken() -> AsyncWork:
    """A coroutine function that never works."""

    async def fetch(key: bytes) -> bytes:
        raise ConnectionResetError("reset by peer")

    return fetch
