"""What each kind of fault does to a request and its response; every action's meaning is here, and only here."""

from collections.abc import Callable
from dataclasses import replace

from forbear.testing.cloud.api import resumable
from forbear.testing.cloud.api.uploads import media_start, named
from forbear.testing.cloud.call import ApiCall
from forbear.testing.cloud.faults import actions
from forbear.testing.cloud.faults.fault import Fault
from forbear.testing.cloud.http.content import Content, content_of, joined
from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import HttpResponse
from forbear.testing.cloud.http.outgoing import Delivery, ResponseEnd
from forbear.testing.cloud.storage.model import StoredObject

_BEYOND_ANY_END = f"bytes={10**17}-"


def wait_before(fault: Fault | None) -> float:
    """How many seconds to hold the request before acting on it."""
    if fault is not None and fault.when == "before" and isinstance(fault.action, actions.Delay):
        return fault.action.seconds
    return 0.0


def strike(fault: Fault, call: ApiCall, act: Callable[[ApiCall], HttpResponse]) -> Delivery:
    """Act (or not) on the request, and spoil the response as the fault says."""
    action = fault.action
    match action:
        case actions.RespondWith() | actions.Reset() | actions.Close():
            if fault.when == "after":
                act(call)
            return _replaced(action, call)
        case actions.Truncate(keep, share, reset):
            response = act(call)
            cut = keep if share is None else int(len(response.body) * share)
            return Delivery(response, ResponseEnd.RESET if reset else ResponseEnd.CLOSE, cut)
        case actions.Stall(keep, limit):
            return Delivery(act(call), ResponseEnd.STALL, keep, limit)
        case actions.Partial(keep, status):
            return _kept(call, act, keep, status)
        case actions.ExpireSession(status):
            resumable.expire(call, status)
            return Delivery(act(call))
        case actions.Rewind(to):
            return Delivery(resumable.rewind(call, to) or act(call))
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
            response = act(call)
            return Delivery(replace(response, body=_flipped(content_of(response.body), at)))
        case actions.Lag(reads):
            return Delivery(_hidden(call, act, reads))
        case actions.LongRunning(polls, error):
            return Delivery(_prolonged(call, act, polls, error))
        case actions.Delay(seconds):
            return Delivery(act(call), delay=seconds if fault.when == "after" else 0.0)


def _kept(call: ApiCall, act: Callable[[ApiCall], HttpResponse], keep: int, status: int | None) -> Delivery:
    if status == 308 and keep >= len(call.request.content):
        return Delivery(act(call))  # nothing is lost, so the honest answer is the usual one
    session = resumable.keep_part(call, call.request.content.cut(0, keep))
    if status is None:
        return Delivery(None, ResponseEnd.RESET)
    if status != 308:
        return Delivery(_error(call, status))
    return Delivery(act(call) if session is None else resumable.incomplete(call, session))


def _meanwhile(
    action: actions.ReplaceObject | actions.DeleteObject,
    when: str,
    call: ApiCall,
    act: Callable[[ApiCall], HttpResponse],
) -> HttpResponse:
    response = act(call) if when == "after" else None
    match action:
        case actions.ReplaceObject(content):
            _replace_object(call, content)
        case actions.DeleteObject():
            _delete_object(call)
    return response or act(call)


def _with_range(call: ApiCall, value: str | None) -> ApiCall:
    headers = {name: text for name, text in call.request.headers.items() if name != "range"}
    if value is not None:
        headers["range"] = value
    return replace(call, request=replace(call.request, headers=headers))


def _with_content(call: ApiCall, content: Content) -> ApiCall:
    return replace(call, request=replace(call.request, content=content))


def _hidden(call: ApiCall, act: Callable[[ApiCall], HttpResponse], reads: int) -> HttpResponse:
    before = call.effects.total
    response = act(call)
    if call.effects.total > before:
        call.store.iam.unseen[call.effects[-1].resource] = reads
    return response


def _prolonged(call: ApiCall, act: Callable[[ApiCall], HttpResponse], polls: int, error: int | None) -> HttpResponse:
    jobs = call.store.memorystore.jobs
    before = len(jobs)
    response = act(call)
    for job in list(jobs.values())[before:]:
        job.polls, job.error = polls, error
    return response


def _replaced(action: actions.RespondWith | actions.Reset | actions.Close, call: ApiCall) -> Delivery:
    match action:
        case actions.Reset():
            return Delivery(None, ResponseEnd.RESET)
        case actions.Close():
            return Delivery(None, ResponseEnd.CLOSE)
        case actions.RespondWith(code, headers, reason, message, body):
            if body is not None:
                return Delivery(HttpResponse(code, headers, body.encode()))
            error = _error(call, code, reason, message)
            return Delivery(HttpResponse(code, (*headers, *error.headers), error.body))


def _error(call: ApiCall, status: int, reason: str | None = None, message: str | None = None) -> HttpResponse:
    return call.error_form(ApiError(status, message or "This is an injected fault.", reason))


def _flipped(content: Content, at: int) -> Content:
    if at >= len(content):
        return content
    (byte,) = bytes(content.cut(at, at + 1))
    return joined((content.cut(0, at), content_of(bytes([byte ^ 0xFF])), content.cut(at + 1)))


_FLIPPED = bytes(each ^ 0xFF for each in range(256))


def _replace_object(call: ApiCall, content: bytes | None) -> None:
    """Write the object that the call is about: with this content, or the old one with every bit flipped."""
    place = _place(call)
    if place is None:
        return
    bucket, name = place
    old = _live(call, bucket, name)
    written = content_of(b"somebody else's" if content is None else content)
    if content is None and old is not None:
        written = Content(bytes(piece).translate(_FLIPPED) for piece in old.content.pieces)
    try:
        call.store.put(bucket, name, written, None if old is None else old.fields)
    except ApiError:
        return  # there is no such bucket, or no such name


def _delete_object(call: ApiCall) -> None:
    """Delete the object that the call is about, if it is there."""
    place = _place(call)
    old = None if place is None else _live(call, *place)
    if old is not None:
        call.store.delete_object(old, for_good=False)


def _place(call: ApiCall) -> tuple[str, str] | None:
    """The bucket and the object that the call is about: of a copy, the source."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        return session.bucket, session.name
    try:
        return call.names["bucket"], call.names.get("object") or named(call)
    except ApiError:
        return None


def _live(call: ApiCall, bucket: str, name: str) -> StoredObject | None:
    home = call.store.buckets.get(bucket)
    return None if home is None else home.live(name)
