"""urllib.request, http.client and xmlrpc: the request is a variable, and each redirect opens a request of its own."""

from forbear.evidence.look import Look, find_below
from forbear.evidence.sent import Sent, body_of, get_own, headers_of, list_streams, package, request_of
from forbear.evidence.table import CONNECTIONS, POOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType


def read_opened(look: Look, trace: "TracebackType") -> None:
    """Read the request that an opener opens; if it leads to another one, it was answered by a redirect."""
    hop, request = bool(find_below(trace, ("open",), "urllib.request")), look.names(trace).get("req")
    _add(look, request, None, hop=hop)
    if not hop and type(look.error).__name__ == "HTTPError" and id(request) in look.sent:
        look.sent[id(request)].status = get_own(look.error, "code")


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that is sent over a connection, which knows the method that was really sent."""
    names = look.names(trace)
    connection = names.get("h")
    _add(look, names.get("req"), get_own(connection, "_method"))
    if trace.tb_next is not None:  # what was raised here itself says nothing
        look.prove(bool(find_below(trace, ("connect",), "http.client")))


def read_connection(look: Look, trace: "TracebackType") -> None:
    """Read what http.client sends; of a response that is awaited only the method is known."""
    if look.above is not None and _is_of_pool(look, look.above.tb_frame):
        return
    names = look.names(trace)
    here = names["self"]
    method = names.get("method") or get_own(names.get("response"), "_method") or get_own(here, "_method")
    if look.serves_current(method):
        return
    host, port, path = get_own(here, "host"), get_own(here, "port"), names.get("url")
    scheme = "https" if type(here).__name__.startswith("HTTPS") else "http"
    subject = None
    if type(path) is str and type(host) is str:
        url = path if "://" in path else f"{scheme}://{host}:{port}{path}"
        subject = request_of(method, url, headers_of(names.get("headers")), body_of(names.get("body")))
    unsent = bool(find_below(trace, ("connect",), "http.client"))
    streams = list_streams(names.get("body"))
    sent = Sent("http.client", "http", str(method or ""), subject, unsent=unsent, streams=streams)
    look.add(id(trace.tb_frame), sent)  # a connection may have sent another one before


def _is_of_pool(look: Look, frame: "FrameType") -> bool:
    """Return whether a frame is that of a pool of urllib3 whose request is known, or of a connection that it calls.

    A timeout is raised anew: the traceback of the first error begins below the pool's function, which was read.
    """
    pool = frame if frame.f_code.co_name == "_make_request" else frame.f_back
    if pool is None or pool.f_code.co_name != "_make_request":
        return False
    if look.current is None and pool.f_back not in look.links:
        return False
    is_own = frame is pool or frame.f_globals.get("__name__") in CONNECTIONS
    return is_own and pool.f_globals.get("__name__") in POOLS


def read_body(look: Look, trace: "TracebackType") -> None:
    """Read the response whose body broke."""
    response = look.names(trace)["self"]
    if type(response).__name__.endswith("Response") and not look.serves_current(get_own(response, "_method")):
        read_answered(look, response)


def read_answered(look: Look, response: object) -> None:
    """Read the request of a response, which knows its URL if it is one of urllib."""
    method, status = get_own(response, "_method"), get_own(response, "status")
    subject = request_of(method, get_own(response, "url"))
    look.add(id(response), Sent("http.client", "http", str(method or ""), subject, unsent=False, status=status))


def read_procedure(look: Look, trace: "TracebackType") -> None:
    """Read a call over XML-RPC, a POST whose response may be an error, or broken; xmlrpc sends it twice by itself."""
    names = look.names(trace)
    host, path, transport = names.get("host"), names.get("handler"), names["self"]
    scheme = "https" if any(kind.__name__ == "SafeTransport" for kind in type(transport).__mro__) else "http"
    subject = request_of("POST", f"{scheme}://{host}{path}", {}, body_of(names.get("request_body")))
    unsent = look.names_above.get("i") == 0 and bool(find_below(trace, ("connect",), "http.client"))
    status = get_own(names.get("resp"), "status")
    look.add(id(trace.tb_frame), Sent("xmlrpc", "http", "POST", subject, unsent=unsent, status=status))


def read_before(look: Look, frames: "list[FrameType]") -> None:
    """Add the request before a redirect to one that was read: a variable of `frames` may be that.

    Where there is none, and the function says `urlopen(..., data=...)`, it may have been a POST.
    """
    values = [each for frame in frames for each in look.open(frame).values()]
    requests = [each for each in values if package(each) == "urllib" and type(each).__name__ == "Request"]
    for request in requests:
        if get_own(request, "redirect_dict"):
            _add(look, request, None, hop=True)
    codes = [frame.f_code for frame in frames if "urlopen" in frame.f_code.co_names]
    if not requests and any(type(each) is tuple and "data" in each for code in codes for each in code.co_consts):
        look.add(id(frames[0]), Sent("urllib", "http", "", unsent=False), enter=False)


def read_retrieved(look: Look, trace: "TracebackType") -> None:
    """Read what `urlretrieve` has asked for, whose response was cut off."""
    names = look.names(trace)
    if "fp" in names:
        method = "GET" if names["data"] is None else "POST"
        subject = request_of(method, names["url"], body=body_of(names["data"]))
        look.add(id(trace.tb_frame), Sent("urllib", "http", method, subject, unsent=False))


def _add(look: Look, request: object, method: object, *, hop: bool = False) -> None:
    known = look.sent.get(id(request))
    if known is not None and not hop and method in (None, known.method) and look.knows(id(request)):
        return
    if package(request) != "urllib" and get_own(request, "_full_url") is None:
        return
    content = get_own(request, "_data")
    if type(method) is not str:
        method = get_own(request, "method") or ("GET" if content is None else "POST")
    headers: dict[str, str] = {**(get_own(request, "headers") or {}), **(get_own(request, "unredirected_hdrs") or {})}
    subject = request_of(method, get_own(request, "_full_url"), headers_of(headers), body_of(content))
    if known is not None and known.method != method and subject is not None:
        del look.sent[id(request)]  # a request whose method was a guess
    unsent, streams = False if hop else None, list_streams(content)
    look.add(id(request), Sent("urllib", "http", str(method), subject, hop=hop, unsent=unsent, streams=streams))
