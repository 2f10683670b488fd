"""The loop of RPCs, and `settle`: after a conflict that may be of one's own making, a Get says what was done.

`arepeat` is the loop of Google's calls and of asyncio channels. `asettle_call` lets it send the Get, if the user's word
and the definitions allow one. The sync forms are generated.
"""

from forbear.core.verdict import PERMANENT
from forbear.exchange.call import RetriedCall, details_of
from forbear.exchange.http.settling import LONGEST, SettleWord, end_run, is_in_doubt
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, to_raw
from forbear.grpc.vouch import covers, rpc_patterns
from forbear.run.failure import DetailedFailure
from forbear.run.functions import refuse_awaitable
from forbear.run.scope import OwnWrites, open_scopes
from forbear.services import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from forbear.exchange.grpc import Rpc
    from forbear.services.rpcs.settling import MineRpc, ReadPlan

    SettleRpcs = bool | str | Iterable[str] | Callable[[GrpcCall], bool] | MineRpc

_LARGEST = 2**20
"""The bytes of a message that are compared."""


class RpcSettleWord(SettleWord):
    """The user's word for the RPCs of one channel: patterns have their names, and functions take a `GrpcCall`."""

    __slots__ = ()

    def __init__(self, settle: "SettleRpcs") -> None:
        super().__init__(settle, rpc_patterns)

    def _is_listed(self, request: "Any") -> bool:
        return covers(self._patterns, request)


def read_settle(settle: "SettleRpcs") -> RpcSettleWord | None:
    """Return the user's word, None for False; TypeError or ValueError for a wrong one."""
    return None if settle is False else RpcSettleWord(settle)


class RpcReadBack:
    """The read that settles one call: an RPC as `method`, its `request`, and the seconds of its `timeout`."""

    __slots__ = ("_call", "_plan", "_rpc", "method", "request", "timeout")

    def __init__(self, rpc: "Rpc", call: GrpcCall, plan: "ReadPlan", timeout: float) -> None:
        self._rpc, self._call, self._plan = rpc, call, plan
        self.method, self.request, self.timeout = f"/{plan.rpc}", plan.request, timeout

    def encode_as(self, kind: "Any") -> "Any":
        """Return the request as a message of the class `kind` with the same bytes; ValueError if it has none."""
        encoded = to_raw(self.request).SerializeToString()
        message = kind.deserialize(encoded) if hasattr(kind, "deserialize") else kind.FromString(encoded)
        if to_raw(message).SerializeToString() != encoded:
            raise ValueError(f"a {kind.__name__} cannot have the bytes of the read")
        return message

    def route(self, metadata: "Iterable[tuple[str, Any]] | None") -> "list[tuple[str, Any]]":
        """Return the metadata of the call for the read: the header that routes it names the resource."""
        from urllib.parse import quote

        name = quote(self.request.name, safe="/")
        return [(key, f"name={name}" if key == "x-goog-request-params" else value) for key, value in metadata or ()]

    def settle(self, retried: RetriedCall, error: Exception, response: "Any", failure: Exception | None) -> "Any":
        """Return the response to the call, None if it is not proven that it was executed; end its run then.

        The read got a `response`, or ended with a `failure`. `error` is that of the call.
        """
        from forbear.services.cloud_storage.settling import Finding, Reading
        from forbear.services.rpcs.settling import settle

        status = 200 if failure is None else _status_of(failure)
        if failure is None and to_raw(response).ByteSize() > _LARGEST:
            return None
        found = response if status == 200 and self._plan.sent is not None else None
        if settle(self._call, [Reading(status, found)], self._rpc.vouch.settle.mine).finding is not Finding.DONE:
            return None
        subject = self._rpc.subject(self._call.message)
        details = details_of(error, retried.runtime.now(), subject)
        end_run(retried.begin_run(self._call.name, subject), DetailedFailure(PERMANENT, error, details=details))
        if retried.entry is not None:
            retried.entry.done()
        if retried.key is not None:
            retried.key.succeeded()
        return self._plan.response() if found is None else found


def _status_of(error: Exception) -> int:
    """Return the HTTP status of an error; 404 for NOT_FOUND, and 500 for any other code."""
    status = errors.status_of(error)
    return (404 if errors.code_of(error) == codes.NOT_FOUND else 500) if status is None else status


async def asettle_call(
    rpc: "Rpc", retried: RetriedCall, error: Exception, message: object, send: "Callable[[RpcReadBack], Any]"
) -> "Any":
    """Return the response to a call that ended with `error`, if a read shows that an earlier attempt worked; else None.

    `send` sends the read once, and returns its response or raises its error. The conditions are those of HTTP.
    """
    look = _find_read(rpc, retried, error, message)
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


# Generated from `asettle_call`: change that, then run `make unasync`.
def settle_call(
    rpc: "Rpc", retried: RetriedCall, error: Exception, message: object, send: "Callable[[RpcReadBack], Any]"
) -> "Any":
    """Do the same with a sync `send`."""
    look = _find_read(rpc, retried, error, message)
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


async def arepeat(
    rpc: "Rpc",
    retried: RetriedCall,
    message: object,
    send: "Callable[[], Any]",
    read: "Callable[[RpcReadBack], Any]",
    on_error: "Callable[[Exception], object] | None" = None,
) -> "Any":
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


# Generated from `arepeat`: change that, then run `make unasync`.
def repeat(
    rpc: "Rpc",
    retried: RetriedCall,
    message: object,
    send: "Callable[[], Any]",
    read: "Callable[[RpcReadBack], Any]",
    on_error: "Callable[[Exception], object] | None" = None,
) -> "Any":
    """Do the same with sync functions; TypeError for a value that should be awaited."""
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


def _find_read(rpc: "Rpc", retried: RetriedCall, error: Exception, message: object) -> RpcReadBack | None:
    if rpc.vouch.settle is None:
        return None
    from forbear.services.rpcs.settling import plan_read  # loads the list

    word, judgement, call = rpc.vouch.settle, rpc.judge(message, by_table=True), GrpcCall(rpc.method, message)
    over_http = errors.status_of(error)
    done = judgement.maybe_done if over_http is None else codes.over_http(judgement.maybe_done)
    if (errors.code_of(error) if over_http is None else over_http) not in done:
        return None
    if not is_in_doubt(retried.run, rpc.identify(message)) or next(open_scopes(OwnWrites), None) is not None:
        return None
    plan = plan_read(call, word.mine) if word.covers(call) else None
    left = retried.time_left(retried.policy.limits.timeout)
    timeout = LONGEST if left is None else min(LONGEST, left)
    return None if plan is None or timeout <= 0 else RpcReadBack(rpc, call, plan, timeout)
