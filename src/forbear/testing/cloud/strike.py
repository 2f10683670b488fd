"""What each kind of fault does to a request and its reply; every action's meaning is here, and only here."""

from collections.abc import Callable

from forbear.testing.cloud import actions, receiving
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.delivery import Delivery, Ending
from forbear.testing.cloud.errors import ApiError
from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.wire import Reply


def wait_before(fault: Fault | None) -> float:
    """How many seconds to hold the request before acting on it."""
    if fault is not None and fault.when == "before" and isinstance(fault.action, actions.Delay):
        return fault.action.seconds
    return 0.0


def strike(fault: Fault, call: Call, act: Callable[[], Reply]) -> Delivery:
    """Act (or not) on the request, and spoil the reply as the fault says."""
    action = fault.action
    match action:
        case actions.Status() | actions.Reset() | actions.Close():
            if fault.when == "after":
                act()
            return _replaced(action, call)
        case actions.Truncate(keep, share, reset):
            reply = act()
            cut = keep if share is None else int(len(reply.body) * share)
            return Delivery(reply, Ending.RESET if reset else Ending.CLOSE, cut)
        case actions.Stall(keep, limit):
            return Delivery(act(), Ending.STALL, keep, limit)
        case actions.Partial(keep, status):
            receiving.keep_part(call, call.request.body[:keep])
            return Delivery(None, Ending.RESET) if status is None else Delivery(_error(call, status))
        case actions.ExpireSession(status):
            receiving.expire(call, status)
            return Delivery(act())
        case actions.Corrupt(at):
            reply = act()
            return Delivery(Reply(reply.status, reply.headers, _flipped(reply.body, at)))
        case actions.Lag(reads):
            return Delivery(_hidden(call, act, reads))
        case actions.LongRunning(polls, error):
            return Delivery(_prolonged(call, act, polls, error))
        case actions.Delay(seconds):
            return Delivery(act(), delay=seconds if fault.when == "after" else 0.0)


def _hidden(call: Call, act: Callable[[], Reply], reads: int) -> Reply:
    before = call.effects.total
    reply = act()
    if call.effects.total > before:
        call.store.iam.unseen[call.effects[-1].resource] = reads
    return reply


def _prolonged(call: Call, act: Callable[[], Reply], polls: int, error: int | None) -> Reply:
    jobs = call.store.memorystore.jobs
    before = len(jobs)
    reply = act()
    for job in list(jobs.values())[before:]:
        job.polls, job.error = polls, error
    return reply


def _replaced(action: actions.Status | actions.Reset | actions.Close, call: Call) -> Delivery:
    match action:
        case actions.Reset():
            return Delivery(None, Ending.RESET)
        case actions.Close():
            return Delivery(None, Ending.CLOSE)
        case actions.Status(code, headers, reason, message, body):
            if body is not None:
                return Delivery(Reply(code, headers, body.encode()))
            error = _error(call, code, reason, message)
            return Delivery(Reply(code, (*headers, *error.headers), error.body))


def _error(call: Call, status: int, reason: str | None = None, message: str | None = None) -> Reply:
    return call.error_form(ApiError(status, message or "This is an injected fault.", reason))


def _flipped(body: bytes, at: int) -> bytes:
    if at >= len(body):
        return body
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]
