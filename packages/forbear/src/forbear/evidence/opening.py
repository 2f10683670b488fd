"""Tell whether urllib3 or http.client was still opening the connection when an error was raised, by their functions.

The name of an error proves nothing: urllib3 calls a response that was lost behind a proxy a `ProxyError`, because a
closed connection no longer knows that it was open. Only the function that raised the error can prove that nothing was
sent: it must be one that opens the connection. urllib3 opens it before it sends the first byte of a request.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_OPENING = frozenset({"_get_conn", "_prepare_proxy", "_validate_conn"})
"""The functions of urllib3's pool that run before a request: take a connection, open the tunnel, shake hands."""

_SENDING = frozenset({"request", "request_chunked"})
"""The methods of urllib3's connection that send a request; http.client may open the connection within them."""

POOLS, CONNECTIONS, RESPONSES, MANAGERS = (
    tuple(
        f"{package}{name}" for package in ("urllib3.", "urllib3._async.", "urllib3_future.", "urllib3_future._async.")
    )
    for name in ("connectionpool", "connection", "response", "poolmanager")
)
"""The modules of urllib3. urllib3-future, which niquests needs, takes its place, or stands beside it."""

_PHASES = {**dict.fromkeys(_OPENING, POOLS), **dict.fromkeys((*_SENDING, "getresponse"), CONNECTIONS)}

_SENDERS = frozenset({*CONNECTIONS, "http.client", "botocore.awsrequest"})
"""The modules of connections; botocore's overrides methods of http.client's."""


def was_opening(trace: "TracebackType | None") -> bool | None:
    """Return True if a traceback shows the connection being opened, False if a request was sent, None for neither.

    An error of the caller's own body stream counts as sending, even if it comes from opening another connection.
    """
    while trace is not None:
        name = trace.tb_frame.f_code.co_name
        if name in _PHASES and trace.tb_frame.f_globals.get("__name__") in _PHASES[name]:
            return name in _OPENING or (name in _SENDING and _was_connecting(trace))
        trace = trace.tb_next
    return None


def _was_connecting(trace: "TracebackType") -> bool:
    """Return whether a method that sends a request has called http.client, which was opening the connection."""
    following, caller = trace.tb_next, ""
    while following is not None:
        name = following.tb_frame.f_code.co_name
        if caller == "send" and name == "connect":
            return True
        if following.tb_frame.f_globals.get("__name__") not in _SENDERS:
            return False
        following, caller = following.tb_next, name
    return False
