"""The loop of Google's calls, sync, and the read that settles a conflict of their own making.

Generated from arepeat.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable
from typing import Any

from forbear.exchange.call_state import RetriedCall
from forbear.exchange.grpc import Rpc
from forbear.exchange.settling import RpcReadBack, find_read
from forbear.run.functions import refuse_awaitable


def settle_call(
    rpc: Rpc, retried: RetriedCall, error: Exception, message: object, send: Callable[[RpcReadBack], Any]
) -> Any:
    """Return the response to a call that ended with `error`, if a read shows that an earlier attempt worked; else None.

    `send` sends the read once, and returns its response or raises its error.
    """
    look = find_read(rpc, retried, error, message)
    if look is None:
        return None
    try:
        found, failure = send(look), None
    except Exception as failed:
        found, failure = None, failed
    except BaseException as interrupt:  # an earlier attempt of the call may have worked, and a run around must know
        rpc.cut_off(retried, interrupt, message)
        raise
    return look.settle(retried, error, found, failure)


def repeat(
    rpc: Rpc,
    retried: RetriedCall,
    message: object,
    send: Callable[[], Any],
    read: Callable[[RpcReadBack], Any],
    on_error: Callable[[Exception], object] | None = None,
) -> Any:
    """Call `send()`, an attempt of a call with `message`, as often as the policy allows; return its value.

    On giving up, it raises the last error. `read` sends the read that settles a conflict. `on_error` is called with
    each error that is worth a retry. TypeError for a value that should be awaited.
    """
    try:
        while True:
            try:
                value: object = send()
            except Exception as error:
                settled = settle_call(rpc, retried, error, message, read)
                if settled is not None:
                    return settled
                grant = rpc.failed(retried, error, message, on_error=on_error)
                if grant is None or not grant.ask():
                    raise
            except BaseException as interrupt:
                rpc.cut_off(retried, interrupt, message)
                raise
            else:
                if hasattr(type(value), "__await__"):
                    refuse_awaitable(value, rpc.method)
                retried.succeeded()
                return value
            grant.sleep()
    except BaseException:
        retried.end()
        raise
