"""The loop of Google's calls and of asyncio channels, async, and the read that settles a conflict of their own making.

`repeat.py` has the sync form. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from forbear.exchange.call_state import RetriedCall
from forbear.exchange.grpc import Rpc
from forbear.exchange.settling import RpcReadBack, find_read


async def asettle_call(
    rpc: Rpc, retried: RetriedCall, error: Exception, message: object, send: Callable[[RpcReadBack], Awaitable[Any]]
) -> Any:
    """Return the response to a call that ended with `error`, if a read shows that an earlier attempt worked; else None.

    `send` sends the read once, and returns its response or raises its error.
    """
    look = find_read(rpc, retried, error, message)
    if look is None:
        return None
    try:
        found, failure = await send(look), None
    except Exception as failed:
        found, failure = None, failed
    except BaseException as interrupt:  # an earlier attempt of the call may have worked, and a run around must know
        rpc.cut_off(retried, interrupt, message)
        raise
    return look.settle(retried, error, found, failure)


async def arepeat(
    rpc: Rpc,
    retried: RetriedCall,
    message: object,
    send: Callable[[], Awaitable[Any]],
    read: Callable[[RpcReadBack], Awaitable[Any]],
    on_error: Callable[[Exception], object] | None = None,
) -> Any:
    """Await `send()`, an attempt of a call with `message`, as often as the policy allows; return its value.

    On giving up, it raises the last error. `read` sends the read that settles a conflict. `on_error` is called with
    each error that is worth a retry.
    """
    try:
        while True:
            try:
                value: object = await send()
            except Exception as error:
                settled = await asettle_call(rpc, retried, error, message, read)
                if settled is not None:
                    return settled
                grant = rpc.failed(retried, error, message, on_error=on_error)
                if grant is None or not await grant.aask():
                    raise
            except BaseException as interrupt:  # a cancellation, too
                rpc.cut_off(retried, interrupt, message)
                raise
            else:
                retried.succeeded()
                return value
            await grant.asleep()
    except BaseException:
        retried.end()
        raise
