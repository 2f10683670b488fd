"""Publish and subscribe, sync and asyncio: a subscription is taken up again. It knows no library.

The libraries connect and subscribe anew when a connection breaks, and then raise all the same. What was published in
the meantime is lost, as always with Redis.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from forbear.exchange.redis.call import Call
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.work import SUBSCRIPTION

T = TypeVar("T")


def keep(settings: Settings, attempt: Callable[[], T]) -> T:
    """Make the attempt as often as the policy allows; time counts from the first failure, not from the listening."""
    call = None
    while True:
        try:
            value = attempt()
        except Exception as error:
            if settings.policy is None:
                raise
            if call is None:
                call = Call(settings, settings.policy, SUBSCRIPTION)
            delay = call.failed(error)
            if delay is None:
                raise
        else:
            if call is not None:
                call.succeeded()
            return value
        call.runtime.sleep(delay)


async def akeep(settings: Settings, attempt: Callable[[], Awaitable[T]]) -> T:
    """The same for asyncio."""
    call = None
    while True:
        try:
            value = await attempt()
        except Exception as error:
            if settings.policy is None:
                raise
            if call is None:
                call = Call(settings, settings.policy, SUBSCRIPTION)
            delay = call.failed(error)
            if delay is None:
                raise
        else:
            if call is not None:
                call.succeeded()
            return value
        await call.runtime.asleep(delay)
