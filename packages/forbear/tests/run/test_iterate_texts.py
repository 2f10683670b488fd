"""Loops over a policy that are written wrongly say so, and forget their runs at the end."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import forbear
from forbear.run.judges import RAISE
from forbear.run.open_runs import blocks
from forbear.testing import virtual_time

POLICY = forbear.retry(OSError, attempts=3, backoff=forbear.Constant(2))
NOT_ENTERED = "the attempt was not entered, so its outcome is unknown; put `with attempt:` around the work"
ONCE = "an attempt is entered once, in its own loop: `for attempt in policy: with attempt:`"
FUNCTION = "a returned value, and a block has none; use policy.call or the decorator"


@pytest.fixture(autouse=True)
def _time() -> Iterator[None]:
    with virtual_time():
        yield


def loop(policy: forbear.Policy) -> None:
    """Run a block that succeeds."""
    for attempt in policy:
        with attempt:
            pass


def aloop(policy: forbear.Policy) -> None:
    """Run one in async code."""

    async def main() -> None:
        async for attempt in policy:
            async with attempt:
                pass

    asyncio.run(main())


def without_with(policy: forbear.Policy) -> None:
    """Forget to enter the block."""
    for _ in policy:
        pass


def entered_twice(policy: forbear.Policy) -> None:
    """Enter it again."""
    for attempt in policy:
        with attempt:
            pass
        with attempt:
            pass


def aplain(policy: forbear.Policy) -> None:
    """Enter a block with a timeout by a plain `with`."""

    async def main() -> None:
        async for attempt in policy:
            with attempt:
                pass

    asyncio.run(main())


WRONG: list[tuple[Callable[[Any], object], dict[str, Any], type[Exception], str]] = [
    (
        loop,
        {"key": len},
        TypeError,
        "`key` is called with the arguments of a function, and a block has none; use run_key in it",
    ),
    (loop, {"on_result": bool}, TypeError, f"`on_result` needs {FUNCTION}"),
    (aloop, {"on_give_up": None}, TypeError, f"`on_give_up` replaces {FUNCTION}"),
    (loop, {"on_give_up": None, "on_result": bool}, TypeError, f"`on_result` needs {FUNCTION}"),
    (without_with, {}, RuntimeError, NOT_ENTERED),
    (entered_twice, {}, RuntimeError, ONCE),
    (
        aplain,
        {"attempt_timeout": 5},
        TypeError,
        "`attempt_timeout` needs `async with attempt:`; plain `with` cannot interrupt a block",
    ),
]


@pytest.mark.parametrize(("run", "options", "error", "text"), WRONG, ids=map(str, range(len(WRONG))))
def test_what_is_refused(
    run: Callable[[Any], object], options: dict[str, Any], error: type[Exception], text: str
) -> None:
    """The whole text says how to write it; nothing of the block is left."""
    with pytest.raises(error) as caught:
        run(POLICY.with_changes(**options))
    assert str(caught.value) == text
    assert blocks == {}
    loop(POLICY.with_changes(on_give_up=RAISE, on_result=None, key=None))


@pytest.mark.parametrize("error", [OSError, KeyError, KeyboardInterrupt, None])
def test_a_block_that_is_left_is_forgotten(error: type[BaseException] | None) -> None:
    """However it ends, no run is known after it; within it the outer one of two knows its attempt."""
    seen = list[int]()

    def run() -> None:
        for attempt in POLICY:
            with attempt:
                for inner in POLICY:
                    with inner:
                        assert blocks
                assert blocks
                seen.append(attempt.number)
                if error is not None:
                    raise error

    with nullcontext() if error is None else pytest.raises(error):
        run()
    assert seen == ([1, 2, 3] if error is OSError else [1])
    assert blocks == {}


def test_the_arguments_of_a_key() -> None:
    """The function of a policy's `key` gets those of the function, by position and by name."""
    got = list[object]()

    def key(order: int, *, currency: str) -> str:
        got.append((order, currency))
        return f"charge-{order}-{currency}"

    def charge(order: int, *, currency: str) -> str:
        return f"{order} {currency}"

    async def acharge(order: int, *, currency: str) -> str:
        return charge(order, currency=currency)

    keyed = POLICY.with_changes(key=key)
    calls: list[Callable[[], object]] = [
        lambda: keyed.call(charge, 1, currency="EUR"),
        lambda: keyed(charge)(1, currency="EUR"),
        lambda: asyncio.run(keyed.acall(acharge, 1, currency="EUR")),
        lambda: asyncio.run(keyed(acharge)(1, currency="EUR")),
    ]
    assert [call() for call in calls] == ["1 EUR"] * 4
    assert got == [(1, "EUR")] * 4
