"""The option `settle` of RPCs: after a conflict that may be of one's own making, a Get says what was done.

`find_read` returns the Get, if the user's word and the definitions allow one. The loop in `arepeat.py` sends it.
"""

from forbear.core.verdict import PERMANENT
from forbear.exchange.call_state import RetriedCall, details_of
from forbear.exchange.http.settling import LONGEST, SettleWord, end_run, is_in_doubt
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, to_raw
from forbear.grpc.vouch import covers, rpc_patterns
from forbear.run.failure import DetailedFailure
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

    _read, _is_listed = staticmethod(rpc_patterns), staticmethod(covers)


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


def find_read(rpc: "Rpc", retried: RetriedCall, error: Exception, message: object) -> RpcReadBack | None:
    """Return the read that settles a call which ended with `error`, None if none can; the rules are those of HTTP."""
    if rpc.vouch.settle is None:
        return None
    from forbear.services.rpcs.settling import plan_read  # loads the list

    word, judgement, call = rpc.vouch.settle, rpc.judge(message, by_table=True), GrpcCall(rpc.method, message)
    over_http = errors.status_of(error)
    done = judgement.maybe_done if over_http is None else codes.to_http(judgement.maybe_done)
    if (errors.code_of(error) if over_http is None else over_http) not in done:
        return None
    if not is_in_doubt(retried.run, rpc.identify(message)) or next(open_scopes(OwnWrites), None) is not None:
        return None
    plan = plan_read(call, word.mine) if word.covers(call) else None
    left = retried.time_left(retried.policy.limits.timeout)
    timeout = LONGEST if left is None else min(LONGEST, left)
    return None if plan is None or timeout <= 0 else RpcReadBack(rpc, call, plan, timeout)
