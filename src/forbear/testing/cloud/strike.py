"""What each kind of fault does to a request and its reply; every action's meaning is here, and only here."""

from collections.abc import Callable
from dataclasses import replace

from forbear.testing.cloud import actions, receiving
from forbear.testing.cloud.meanwhile import _delete_object, _replace_object
from forbear.testing.cloud.api.uploads import media_start
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.content import Content, content_of, joined
from forbear.testing.cloud.delivery import Delivery, Ending
from forbear.testing.cloud.errors import ApiError
from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.wire import Reply

_BEYOND_ANY_END = f"bytes={10**17}-"


def wait_before(fault: Fault | None) -> float:
    """How many seconds to hold the request before acting on it."""
    if fault is not None and fault.when == "before" and isinstance(fault.action, actions.Delay):
        return fault.action.seconds
    return 0.0


def strike(fault: Fault, call: Call, act: Callable[[Call], Reply]) -> Delivery:
    """Act (or not) on the request, and spoil the reply as the fault says."""
    action = fault.action
    match action:
        case actions.Status() | actions.Reset() | actions.Close():
            if fault.when == "after":
                act(call)
            return _replaced(action, call)
        case actions.Truncate(keep, share, reset):
            reply = act(call)
            cut = keep if share is None else int(len(reply.body) * share)
            return Delivery(reply, Ending.RESET if reset else Ending.CLOSE, cut)
        case actions.Stall(keep, limit):
            return Delivery(act(call), Ending.STALL, keep, limit)
        case actions.Partial(keep, status):
            return _kept(call, act, keep, status)
        case actions.ExpireSession(status):
            receiving.expire(call, status)
            return Delivery(act(call))
        case actions.Rewind(to):
            return Delivery(receiving.rewind(call, to) or act(call))
        case actions.CorruptUpload(at):
            return Delivery(act(_with_content(call, _flipped(call.request.content, media_start(call.request) + at))))
        case actions.IgnoreRange():
            return Delivery(act(_with_range(call, None)))
        case actions.OtherRange(first, last):
            return Delivery(act(_with_range(call, f"bytes={first}-{'' if last is None else last}")))
        case actions.RefuseRange():
            return Delivery(act(_with_range(call, _BEYOND_ANY_END)))
        case actions.ReplaceObject() | actions.DeleteObject():
            return Delivery(_meanwhile(action, fault.when, call, act))
        case actions.Corrupt(at):
            reply = act(call)
            return Delivery(replace(reply, body=_flipped(content_of(reply.body), at)))
        case actions.Lag(reads):
            return Delivery(_hidden(call, act, reads))
        case actions.LongRunning(polls, error):
            return Delivery(_prolonged(call, act, polls, error))
        case actions.Delay(seconds):
            return Delivery(act(call), delay=seconds if fault.when == "after" else 0.0)


def _kept(call: Call, act: Callable[[Call], Reply], keep: int, status: int | None) -> Delivery:
    if status == 308 and keep >= len(call.request.content):
        return Delivery(act(call))  # nothing is lost, so the honest answer is the usual one
    session = receiving.keep_part(call, call.request.content.cut(0, keep))
    if status is None:
        return Delivery(None, Ending.RESET)
    if status != 308:
        return Delivery(_error(call, status))
    return Delivery(act(call) if session is None else receiving.incomplete(call, session))


def _meanwhile(
    action: actions.ReplaceObject | actions.DeleteObject, when: str, call: Call, act: Callable[[Call], Reply]
) -> Reply:
    reply = act(call) if when == "after" else None
    match action:
        case actions.ReplaceObject(content):
            _replace_object(call, content)
        case actions.DeleteObject():
            _delete_object(call)
    return reply or act(call)


def _with_range(call: Call, value: str | None) -> Call:
    headers = {name: text for name, text in call.request.headers.items() if name != "range"}
    if value is not None:
        headers["range"] = value
    return replace(call, request=replace(call.request, headers=headers))


def _with_content(call: Call, content: Content) -> Call:
    return replace(call, request=replace(call.request, content=content))


def _hidden(call: Call, act: Callable[[Call], Reply], reads: int) -> Reply:
    before = call.effects.total
    reply = act(call)
    if call.effects.total > before:
        call.store.iam.unseen[call.effects[-1].resource] = reads
    return reply


def _prolonged(call: Call, act: Callable[[Call], Reply], polls: int, error: int | None) -> Reply:
    jobs = call.store.memorystore.jobs
    before = len(jobs)
    reply = act(call)
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


def _flipped(content: Content, at: int) -> Content:
    if at >= len(content):
        return content
    (byte,) = bytes(content.cut(at, at + 1))
    return joined((content.cut(0, at), content_of(bytes([byte ^ 0xFF])), content.cut(at + 1)))
