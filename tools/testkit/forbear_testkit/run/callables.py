"""Callables that fail once, for the tests of what can be retried."""

import asyncio
import inspect
from collections.abc import Awaitable
from typing import Any

from forbear.policy import retry

policy = retry(on=OSError)


class Flaky:
    """Fails once, then answers with what it was called with."""

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, *args: object, **kwargs: object) -> tuple[object, ...]:
        """Fail once."""
        self.calls += 1
        if self.calls == 1:
            raise OSError("lost")
        return (*args, *kwargs.items())


flaky = Flaky()


def plain(a: int, /, b: str = "b", *args: int, key: float, **kwargs: bytes) -> tuple[object, ...]:
    """A function with every kind of parameter."""
    return flaky.answer(a, b, key=key)


async def coroutine(a: int, *, key: float = 1) -> tuple[object, ...]:
    """A coroutine function."""
    await asyncio.sleep(0)  # noqa: TID251 - lets others run
    return flaky.answer(a, key=key)


def finish(value: Any) -> Any:
    """The value, awaited if it must be."""
    return asyncio.run(_await(value)) if inspect.isawaitable(value) else value


async def _await(value: Awaitable[object]) -> object:
    return await value
