"""The forms in which a function is run under a policy, and the ways in which it wraps an error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from forbear.policy import Policy

Form = Callable[[Policy, Callable[[], object]], object]


def _decorated(policy: Policy, work: Callable[[], object]) -> object:
    return policy(work)()


def _called(policy: Policy, work: Callable[[], object]) -> object:
    return policy.call(work)


def _in_block(policy: Policy, work: Callable[[], object]) -> object:
    for attempt in policy:
        with attempt:
            return work()
    raise AssertionError("a block that ends without an error ends its loop")


FORMS: dict[str, Form] = {"decorated": _decorated, "called": _called, "block": _in_block}


async def _adecorated(policy: Policy, work: Callable[[], Awaitable[object]]) -> object:
    async def function() -> object:
        return await work()

    return await policy(function)()


async def _acalled(policy: Policy, work: Callable[[], Awaitable[object]]) -> object:
    return await policy.acall(work)


async def _in_ablock(policy: Policy, work: Callable[[], Awaitable[object]]) -> object:
    async for attempt in policy:
        async with attempt:
            return await work()
    raise AssertionError("a block that ends without an error ends its loop")


AFORMS: dict[str, Callable[[Policy, Callable[[], Awaitable[object]]], Any]] = {
    "decorated": _adecorated,
    "called": _acalled,
    "block": _in_ablock,
}


def run_async(form: str, policy: Policy, work: Callable[[], Awaitable[object]]) -> object:
    """Run async work in an event loop of its own."""

    async def main() -> object:
        return await AFORMS[form](policy, work)

    return asyncio.run(main())


class Wrapped(Exception):
    """The error of a user's own layer."""


def _bare(error: Exception) -> object:
    raise error


def _from_it(error: Exception) -> object:
    raise Wrapped from error


def _in_except(error: Exception) -> object:
    try:
        raise error
    except Exception:
        raise Wrapped  # noqa: B904 - the context is what this is about


def _from_none(error: Exception) -> object:
    try:
        raise error
    except Exception:
        raise Wrapped from None


def _in_group(error: Exception) -> object:
    raise ExceptionGroup("several", [ValueError(), error])


WRAPS: dict[str, Callable[[Exception], object]] = {
    "bare": _bare,
    "from": _from_it,
    "in except": _in_except,
    "from None": _from_none,
    "group": _in_group,
}
