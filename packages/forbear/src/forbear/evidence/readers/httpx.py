"""httpx and httpx2: the request is an attribute of the error, and the hops of redirects are variables."""

from forbear.core.chain import entries_of
from forbear.evidence.look import Look, is_among, is_first_try
from forbear.evidence.sent import (
    LONGEST_URL,
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
from forbear.http.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
"""The names of the errors that the library raises only before it has a connection."""

_PARSERS = ("httpx._urlparse", "httpx2._urlparse")
_LISTS = (list, tuple)
_OWN = ("httpx", "httpx2", "httpcore", "httpcore2", "contextlib", "forbear")


def read_kept(look: Look, request: object) -> None:
    """Read the request that an error keeps. It is proven not to be sent by the error's class, if nobody tried before.

    A transport of somebody else may have: then one of its frames stands below the client's.
    """
    unsent, error = None, look.error
    if error is not None and type(error).__name__ in _UNSENT and package(error) in _OWN:
        entries = entries_of(error.__traceback__)
        trace = next((each for each in entries if each.tb_frame.f_code.co_name == "_send_single_request"), None)
        unsent = trace is not None and is_among(trace, *_OWN) and is_first_try(error)
    _add(look, request, unsent=unsent)


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that the client is sending."""
    _add(look, look.names(trace).get("request"))


def read_redirects(look: Look, trace: "TracebackType") -> None:
    """Read the requests that were answered by a redirect, and the one whose response a hook has refused."""
    names = look.names(trace)
    for response in names["history"]:
        _add_hop(look, response)
    answer = names.get("response")
    if get_own(answer, "_request") is names["request"]:
        _add(look, names["request"], status=get_own(answer, "status_code"))


def read_answered(look: Look, response: object) -> None:
    """Read the request of a response, and those of the redirects before it."""
    for hop in get_own(response, "history") or ():
        _add_hop(look, hop)
    _add(look, get_own(response, "_request"), status=get_own(response, "status_code"))


def _add_hop(look: Look, response: object) -> None:
    """Read the request of a redirect, or one that an `auth_flow` has sent before, such as for a token of OAuth."""
    request, status = get_own(response, "_request"), get_own(response, "status_code")
    _add(look, request, hop=True, status=status)
    if id(request) in look.sent and status is not None and status < 300:
        look.sent[id(request)].service = "oauth"


def _add(
    look: Look, request: object, *, hop: bool = False, unsent: bool | None = None, status: int | None = None
) -> None:
    unsent = False if hop or status is not None else unsent
    if look.knows(id(request), hop, unsent, status):
        return
    client = package(request)
    if client not in _OWN:
        return
    kept = dict_of(request)
    method, url, headers, content = kept.get("method"), kept.get("url"), kept.get("headers"), kept.get("_content")
    if type(method) is not str:
        method = ""
    body = None if content is None else body_of(content)
    parts = get_own(url, "_uri_reference")
    if type(parts).__module__ in _PARSERS and parts.scheme and parts.host:
        scheme, _, host, port, path, query, _ = parts  # a text would be put together and taken apart again
        host = f"[{host}]" if ":" in host else host
        host = host if port is None else f"{host}:{port}"
        target = path or "/" if query is None else f"{path or '/'}?{query}"
        is_long = len(target) > LONGEST_URL
        subject = None if is_long else Request(method, host, target, _headers_of(headers), body, scheme)
    else:
        subject = request_of(method, str(url) if package(url) in _OWN else url, _headers_of(headers), body)
    stream = kept.get("stream")
    rewound, streams = type(stream).__name__ == "MultipartStream", list_streams(get_own(stream, "_stream"))
    sent = Sent(client, "http", method, subject, None, unsent, hop, status, rewound=rewound, streams=streams)
    look.add(id(request), sent, enter=not hop)


def _headers_of(headers: object) -> "dict[str, str]":
    """Return headers with lower-case names; their own iteration is ten times as slow."""
    lines: Any = dict_of(headers).get("_list")
    if type(lines) not in _LISTS or len(lines) > MOST_HEADERS:
        return headers_of(headers)
    found = {name.decode("latin-1"): value.decode("latin-1") for _, name, value in lines}
    return found if len(found) == len(lines) else headers_of(lines)
