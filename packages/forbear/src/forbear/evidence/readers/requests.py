"""requests and niquests: the prepared request is an attribute of the error, and the hops of redirects are variables."""

from collections import OrderedDict

from forbear.evidence.look import Look
from forbear.evidence.sent import (
    MOST_HEADERS,
    Sent,
    body_of,
    dict_of,
    get_own,
    headers_of,
    list_streams,
    package,
    request_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


def read_kept(look: Look, request: object) -> None:
    """Read the request that an error keeps."""
    _add(look, request)


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that a session or an adapter is sending."""
    above = look.above
    if above is not None and above.tb_frame.f_code.co_name == "send" and look.is_called_by("requests"):
        return  # an adapter goes on with what its session has
    _add(look, look.names(trace).get("request"))


def read_redirects(look: Look, trace: "TracebackType") -> None:
    """Read the requests that were answered by a redirect."""
    for response in look.names(trace)["hist"]:
        _add(look, get_own(response, "request"), hop=True, status=get_own(response, "status_code"))


def read_answered(look: Look, response: object) -> None:
    """Read the request of a response, and those of the redirects before it."""
    for hop in get_own(response, "history") or ():
        _add(look, get_own(hop, "request"), hop=True, status=get_own(hop, "status_code"))
    _add(look, get_own(response, "request"), status=get_own(response, "status_code"))


def _add(look: Look, request: object, *, hop: bool = False, status: int | None = None) -> None:
    unsent = False if hop or status is not None else None
    if look.knows(id(request), hop, unsent, status):
        return
    client = package(request)
    if client not in ("requests", "niquests"):
        return
    kept = dict_of(request)
    method = kept.get("method")
    if type(method) is not str:
        method = ""
    subject = request_of(method, kept.get("url"), _headers_of(kept.get("headers")), body_of(kept.get("body")))
    streams = list_streams(kept.get("body"))
    sent = Sent(client, "http", method, subject, None, unsent, hop, status, streams=streams)
    look.add(id(request), sent, enter=not hop)


def _headers_of(headers: object) -> "dict[str, str]":
    """Return headers with lower-case names; their own iteration is ten times as slow."""
    kept: Any = dict_of(headers).get("_store")
    if type(kept) not in _MAPPINGS or len(kept) > MOST_HEADERS:
        return headers_of(headers)
    found = {key: value for key, (_, value) in _items(kept) if type(key) is type(value) is str}
    return found if len(found) == len(kept) else headers_of([*kept.values()])


_items = dict[str, "tuple[object, str]"].items  # those of OrderedDict are slow
_MAPPINGS = (OrderedDict, dict)
