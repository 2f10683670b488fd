"""SDKs: the methods of OpenAI's and Anthropic's say what a request means, those of googleapiclient have it whole."""

from forbear.evidence.look import Look
from forbear.evidence.sent import Sent, body_of, get_own, request_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_DECISIVE = ("background", "container", "conversation", "extra_body", "mcp_servers", "tools")
"""The parameters that decide whether a request has effects."""


def read_operation(look: Look, trace: "TracebackType") -> None:
    """Note the operation, by the module and the function, and the address that the SDK's client sends to."""
    names = look.names(trace)
    frame = trace.tb_frame
    module = str(frame.f_globals.get("__name__")).replace(".resources", "")
    sdk, _, rest = module.partition(".")
    parts = list(dict.fromkeys(rest.split(".")))
    base = get_own(get_own(names["self"], "_client"), "_base_url")
    parameters = {name: names[name] for name in _DECISIVE if name in names}
    look.operations.append((str(base), ".".join([sdk, *parts, frame.f_code.co_name]), parameters))


def read_discovery(look: Look, trace: "TracebackType") -> None:
    """Read the request that googleapiclient executes; a batch of requests has its own URL, and is a POST.

    httplib2 below it repeats in secret, so that even a refused connection proves nothing.
    """
    names = look.names(trace)
    request = names["self"]
    method, url = get_own(request, "method") or "POST", get_own(request, "uri") or get_own(request, "_batch_uri")
    subject = request_of(method, url, get_own(request, "headers"), body_of(get_own(request, "body")))
    unread = "its URL is no text" if subject is None else None
    status = get_own(names.get("resp"), "status")
    sent = Sent("googleapiclient", "http", str(method), subject, unread=unread, unsent=False, status=status)
    look.add(id(request), sent)
