"""requests and niquests: the prepared request is an attribute of the error, and the hops of redirects are variables."""

from forbear.evidence.look import Look
from forbear.evidence.sent import Sent, body_of, get_own, package, request_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def read_kept(look: Look, error: BaseException, request: object) -> None:
    """Read the request that an error keeps."""
    _add(look, request)


def read_request(look: Look, trace: "TracebackType") -> None:
    """Read the request that a session or an adapter is sending."""
    names = look.names(trace)
    _add(look, names.get("request"))


def read_redirects(look: Look, trace: "TracebackType") -> None:
    """Read the requests that were answered by a redirect."""
    names = look.names(trace)
    for response in names["hist"]:
        _add(look, get_own(response, "request"), hop=True, status=get_own(response, "status_code"))


def read_body(look: Look, trace: "TracebackType") -> None:
    """Read the response whose body broke."""
    names = look.names(trace)
    read_answered(look, BaseException(), names["self"])


def read_answered(look: Look, error: BaseException, response: object) -> None:
    """Read the request of a response, and those of the redirects before it."""
    for hop in get_own(response, "history") or ():
        _add(look, get_own(hop, "request"), hop=True, status=get_own(hop, "status_code"))
    _add(look, get_own(response, "request"), status=get_own(response, "status_code"))


def _add(look: Look, request: object, *, hop: bool = False, status: int | None = None) -> None:
    if request is None or package(request) not in ("requests", "niquests"):
        return
    unsent = False if hop or status is not None else None
    if look.knows(id(request), hop=hop, unsent=unsent, status=status, enter=not hop):
        return
    method, url = get_own(request, "method"), get_own(request, "url")
    if type(method) is not str:
        method = ""
    subject = request_of(method, url, get_own(request, "headers"), body_of(get_own(request, "body")))
    unread = "its URL is no text" if subject is None else None
    sent = Sent(package(request), "http", method, subject, unread=unread, hop=hop, unsent=unsent, status=status)
    look.add(id(request), sent, enter=not hop)
