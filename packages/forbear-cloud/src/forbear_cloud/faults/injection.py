"""Inject a fault into a request: perform its action, and return the response that results."""

from contextlib import suppress

from forbear_cloud.api import resumable
from forbear_cloud.api.uploads import media_start, object_name
from forbear_cloud.call import ApiCall, Handler
from forbear_cloud.faults import actions
from forbear_cloud.faults.fault import Fault
from forbear_cloud.http.content import Content, content_of, join_contents
from forbear_cloud.http.messages import ApiError, HttpResponse
from forbear_cloud.http.outgoing import Delivery, ResponseEnd

_BEYOND_ANY_END = f"bytes={10**17}-"
_FLIPPED = bytes(each ^ 0xFF for each in range(256))


def wait_before(fault: Fault | None) -> float:
    """Return the seconds for which to hold a request with this fault before it takes effect.

    They are 0 for any fault but a delay before the effect, and for None.
    """
    if fault is not None and fault.when == "before" and isinstance(fault.action, actions.Delay):
        return fault.action.seconds
    return 0.0


def inject(fault: Fault, call: ApiCall, handle: Handler) -> Delivery:
    """Perform the fault's action on a call and return the resulting response and how to deliver it.

    `handle` executes the request. It is not called for a status, reset or close before the effect. A partial upload or
    a rewind may take its place. The wait of a delay before the effect is not made here: see `wait_before`.
    """
    action = fault.action
    match action:
        case actions.RespondWith() | actions.Reset() | actions.Close():
            if fault.when == "after":
                handle(call)
            return _replace_response(action, call)
        case actions.Truncate(keep, share, reset):
            response = handle(call)
            cut = keep if share is None else int(len(response.body) * share)
            return Delivery(response, ResponseEnd.RESET if reset else ResponseEnd.CLOSE, cut)
        case actions.Stall(keep, limit):
            return Delivery(handle(call), ResponseEnd.STALL, keep, limit)
        case actions.Partial(keep, status):
            return _keep_part(call, handle, keep, status)
        case actions.ExpireSession(status):
            resumable.expire(call, status)
            return Delivery(handle(call))
        case actions.Rewind(to):
            return Delivery(resumable.rewind(call, to) or handle(call))
        case actions.CorruptUpload(at):
            content = _flip(call.request.content, media_start(call.request) + at)
            return Delivery(handle(call._replace(request=call.request._replace(content=content))))
        case actions.IgnoreRange():
            return Delivery(handle(_with_range(call, None)))
        case actions.OtherRange(first, last):
            return Delivery(handle(_with_range(call, f"bytes={first}-{'' if last is None else last}")))
        case actions.RefuseRange():
            return Delivery(handle(_with_range(call, _BEYOND_ANY_END)))
        case actions.ReplaceObject() | actions.DeleteObject() if fault.when == "before":
            _change_object(call, action)
            return Delivery(handle(call))
        case actions.ReplaceObject() | actions.DeleteObject():
            response = handle(call)
            _change_object(call, action)
            return Delivery(response)
        case actions.Corrupt(at):
            response = handle(call)
            return Delivery(response._replace(body=_flip(content_of(response.body), at)))
        case actions.Lag(reads):
            return Delivery(_hide(call, handle, reads))
        case actions.LongRunning(polls, error):
            return Delivery(_prolong(call, handle, polls, error))
        case actions.Delay(seconds):
            return Delivery(handle(call), delay=seconds if fault.when == "after" else 0.0)


def _replace_response(action: actions.RespondWith | actions.Reset | actions.Close, call: ApiCall) -> Delivery:
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


def _keep_part(call: ApiCall, handle: Handler, keep: int, status: int | None) -> Delivery:
    if status == 308 and keep >= len(call.request.content):
        return Delivery(handle(call))  # nothing is lost, so the usual response is the true one
    session = resumable.keep_part(call, call.request.content.cut(0, keep))
    if status is None:
        return Delivery(None, ResponseEnd.RESET)
    if status != 308:
        return Delivery(_error(call, status))
    return Delivery(handle(call) if session is None else resumable.incomplete(call, session))


def _flip(content: Content, at: int) -> Content:
    """Return the content with every bit of byte `at` (from 0) flipped; the same content if it has no such byte."""
    if at >= len(content):
        return content
    flipped = bytes(content.cut(at, at + 1)).translate(_FLIPPED)
    return join_contents((content.cut(0, at), content_of(flipped), content.cut(at + 1)))


def _with_range(call: ApiCall, value: str | None) -> ApiCall:
    headers = {name: text for name, text in call.request.headers.items() if name != "range"}
    if value is not None:
        headers["range"] = value
    return call._replace(request=call.request._replace(headers=headers))


def _change_object(call: ApiCall, action: actions.ReplaceObject | actions.DeleteObject) -> None:
    """Replace or delete the object that the call is about, as another client would: the journal does not show it.

    A missing object is created by a replacement, with a fixed text if the action has no content. Nothing happens
    without the bucket, and where a hold or the retention forbids it.
    """
    bucket, name = _object_of(call)
    existing = call.store.buckets.get(bucket)
    old = None if existing is None else existing.live(name)
    if isinstance(action, actions.DeleteObject):
        if old is not None:
            with suppress(ApiError):  # a hold or its retention protects the object
                call.store.delete_object(old, for_good=False)
        return
    if action.content is not None or old is None:
        content = content_of(b"somebody else's" if action.content is None else action.content)
    else:
        content = Content(bytes(piece).translate(_FLIPPED) for piece in old.content.pieces)
    with suppress(ApiError):  # the bucket does not exist, or no object can have this name
        call.store.put(bucket, name, content, None if old is None else old.fields)


def _object_of(call: ApiCall) -> tuple[str, str]:
    """Return the bucket and the name of the object that the call is about, for a copy the source; "", "" for none."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        return session.target.bucket, session.target.name
    try:
        return call.names["bucket"], call.names.get("object") or object_name(call)
    except ApiError:
        return "", ""


def _hide(call: ApiCall, handle: Handler, reads: int) -> HttpResponse:
    before = call.effects.total
    response = handle(call)
    if call.effects.total > before:
        call.store.iam.unseen[call.effects[-1].resource] = reads
    return response


def _prolong(call: ApiCall, handle: Handler, polls: int, error: int | None) -> HttpResponse:
    jobs = call.store.memorystore.jobs
    before = len(jobs)
    response = handle(call)
    for job in list(jobs.values())[before:]:
        job.polls, job.error = polls, error
    return response
