"""aiohttp: method, URL and history are variables of the session's request."""

from forbear.evidence.look import Look, find_below
from forbear.evidence.sent import Sent, body_of, get_own, headers_of, list_streams, package, request_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_SENT_ONCE = ("POST", "PATCH")


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that a session is sending, and the redirects before it.

    A connection that the connector opens is one for this very request.
    """
    names = look.names(trace)
    _add_hops(look, names.get("history"))
    unsent = bool(find_below(trace, ("connect",), "aiohttp.connector")) and _is_first_try(names)
    url = names.get("url", names.get("str_or_url"))
    unknown = names.get("json") is not None or package(names.get("data")) == "aiohttp"
    body = None if unknown else body_of(names.get("data"))
    sent = _add(look, trace.tb_frame, names.get("method"), url, names.get("headers"), body, unsent=unsent)
    sent.streams = list_streams(names.get("data"))


def _is_first_try(names: "dict[str, Any]") -> bool:
    """Return whether nobody tried before: no middleware, and not aiohttp itself, as it does once with some methods."""
    session = names.get("self")
    middlewares = names.get("middlewares") or get_own(session, "_middlewares") or ()
    if not all(package(each) == "forbear" for each in middlewares):  # its error says if it has tried before
        return False
    is_first = names.get("retry_persistent_connection") is not False or names.get("method") in _SENT_ONCE
    return is_first or get_own(session, "_retry_connection") is False


def read_answered(look: Look, info: object) -> None:
    """Read the request of a response with an error status, and the redirects before it."""
    _add_hops(look, get_own(look.error, "history"))
    method, url, headers = (getattr(info, name, None) for name in ("method", "url", "headers"))
    _add(look, info, method, url, headers, None, status=get_own(look.error, "status") or 0)


def read_stream(look: Look, trace: "TracebackType") -> None:
    """Read the response whose stream broke: it is a variable of a function that reads, or nobody knows it."""
    if look.is_within("aiohttp"):
        return
    stream = look.names(trace)["self"]
    response = look.find_above(trace, lambda each: package(each) == "aiohttp" and get_own(each, "content") is stream)
    if response is None:
        look.add(id(stream), Sent("aiohttp", "http", ""))
    else:
        read_response(look, response)


def read_response(look: Look, response: object) -> None:
    """Read the request of a response, and those of the redirects before it."""
    _add_hops(look, get_own(response, "_history"))
    method, url, info = (get_own(response, name) for name in ("method", "_url", "_request_info"))
    _add(look, info if id(info) in look.sent else response, method, url, None, None, status=get_own(response, "status"))


def _add_hops(look: Look, history: "Any") -> None:
    for hop in history or ():
        _add(look, hop, get_own(hop, "method"), get_own(hop, "_url"), hop=True, status=get_own(hop, "status"))


def _add(
    look: Look,
    key: object,
    method: object,
    url: object,
    headers: object = None,
    body: bytes | None = b"",
    *,
    hop: bool = False,
    unsent: bool | None = None,
    status: int | None = None,
) -> Sent:
    text = str(url) if package(url) == "yarl" else url
    subject = request_of(method, text, headers_of(headers), body)
    unsent = False if hop or status is not None else unsent
    sent = Sent("aiohttp", "http", method if type(method) is str else "", subject, None, unsent, hop, status)
    look.add(id(key), sent, enter=not hop)
    return sent
