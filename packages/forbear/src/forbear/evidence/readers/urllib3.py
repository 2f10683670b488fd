"""urllib3, by itself or below requests and botocore: its frames also show whether the connection was being opened."""

from forbear.core.chain import entries_of
from forbear.evidence.look import Look
from forbear.evidence.readers.requests import read_answered as read_of_requests
from forbear.evidence.sent import Sent, body_of, dict_of, get_own, headers_of, list_streams, package, request_of
from forbear.evidence.table import POOLS, was_opening
from forbear.http.request import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that a pool is sending, and all that it was before: redirects, and tries of a Retry object."""
    known = None if look.current is None else look.sent[look.current]
    if known is not None and not look.is_called_by(known.client):
        names = look.names(trace)
        known = known if look.serves_current(names["method"], get_own(names["self"], "host")) else None
    if known is not None and known.client == "urllib3":
        if _is_again(look, trace):
            return
        known = None
    if known is not None and (known.unsent is not None or known.method in READS):
        return  # a read needs no proof
    unsent = None if known is None else was_opening(trace.tb_next)
    if known is not None and unsent is False:
        look.prove(False)
        return
    names = look.names(trace)
    if get_own(names.get("retries"), "history"):
        unsent = False
    elif known is None:
        unsent = was_opening(trace.tb_next)
    response = names.get("response")
    nested = (unsent is not False or response is not None) and _is_nested(trace)
    if nested:
        unsent = False
    if known is not None:
        look.prove(unsent)
        return
    method, url = names["method"], _url(names["self"], names["url"])
    if nested and response is not None:
        _add_redirected(look, response, url)
        return
    subject = request_of(method, url, headers_of(names.get("headers")), body_of(names.get("body")))
    streams = list_streams(names.get("body"))
    look.add(id(trace.tb_frame), Sent("urllib3", "http", method, subject, unsent=unsent, streams=streams))


def _is_again(look: Look, trace: "TracebackType") -> bool:
    """Return whether a pool's function has called itself for another try of the current request.

    The headers are copied for each try; a redirect has another method or URL, or follows one that was read.
    """
    if look.above is None or look.links.get(look.above.tb_frame) != look.current:
        return False
    here, above = look.names(trace), look.names_above
    if not all(here[name] is above.get(name) for name in ("self", "method", "body")):
        return False
    return type(here["url"]) is type(above.get("url")) is str and here["url"] == above["url"]


def _is_nested(trace: "TracebackType") -> bool:
    """Return whether the pool's function stands once more below, for a redirect or another try."""
    here, frames = trace.tb_frame, (entry.tb_frame for entry in entries_of(trace.tb_next))
    return any(frame.f_code is here.f_code and frame is not here for frame in frames)


def read_redirected(look: Look, trace: "TracebackType") -> None:
    """Read the request that was answered by a redirect; the variable `method` may have changed for the next one."""
    below = trace.tb_next
    if below is None or below.tb_frame.f_globals.get("__name__") not in POOLS:  # else it has no response yet
        names = look.names(trace)
        if names.get("response") is not None:
            _add_redirected(look, names["response"], names["url"])


def _add_redirected(look: Look, response: object, url: object) -> None:
    method, status = get_own(get_own(response, "_original_response"), "_method"), get_own(response, "status")
    subject = request_of(method, url)
    sent = Sent("urllib3", "http", str(method or ""), subject, hop=True, unsent=False, status=status)
    look.add(id(response), sent, enter=False)


def read_body(look: Look, trace: "TracebackType") -> None:
    """Read the response whose body broke; requests around it knows more than its own."""
    response = look.names(trace)["self"]
    around = look.find_above(trace, lambda each: package(each) in _AROUND and get_own(each, "raw") is response)
    if around is None:
        read_answered(look, response)
    else:
        read_of_requests(look, around)


_AROUND = ("requests", "niquests")


def read_streamed(look: Look, trace: "TracebackType") -> None:
    """Read the response below a streaming body of botocore, which counts its bytes itself."""
    read_answered(look, get_own(look.names(trace)["self"], "_raw_stream"))


def read_answered(look: Look, response: object) -> None:
    """Read the request of a response, and those of the redirects before it."""
    method = get_own(get_own(response, "_original_response"), "_method")
    if look.serves_current(method):
        look.prove(False)
        return
    url = get_own(response, "_request_url")
    for each in get_own(get_own(response, "_retries") or get_own(response, "retries"), "history") or ():
        if each.redirect_location is not None:  # 303 made a GET of whatever it was, also in the history
            was = "" if each.status == 303 else str(each.method)
            hop = Sent("urllib3", "http", was, request_of(was or None, each.url), None, False, True, each.status)
            look.add(id(each), hop, enter=False)
    subject = request_of(method, _url(get_own(response, "_pool"), url))
    status = get_own(response, "status")
    look.add(id(response), Sent("urllib3", "http", str(method or ""), subject, unsent=False, status=status))


def _url(pool: object, url: object) -> str | None:
    """Return the URL of a pool's request, None if it cannot be read."""
    if type(url) is not str or "://" in url:
        return url if type(url) is str else None
    kept = dict_of(pool)
    scheme, host, port = kept.get("scheme") or getattr(type(pool), "scheme", None), kept.get("host"), kept.get("port")
    return None if not scheme or not host else f"{scheme}://{host}{'' if port is None else f':{port}'}{url}"
