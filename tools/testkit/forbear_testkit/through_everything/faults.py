"""The faults, one a row: where each one happens, step by step, and what it proves. A new fault is one more row.

Steps of a connection that is being opened (at "tunnel" and "tls"): a status, "close", "reset", "garbage", "alert".

Steps of a request: "execute"; "100", "503" (a whole response), "200" (the head and half of the body of a response with
a length), "200 chunked", "200 long" (one that no client waits for); and how it ends: "close" (FIN), "reset" (RST),
"stall"; in HTTP/1.1 also "nonsense" (a line that reads like the refusal of a proxy), in HTTP/2 also "refuse"
(REFUSED_STREAM), "fail" (INTERNAL_ERROR), "go away" (GOAWAY before any stream), "go away late" (before this stream).
"""

from dataclasses import dataclass

from forbear_testkit.through_everything.rules import Row

ONLY_HTTP1 = frozenset({"nonsense"})
ONLY_HTTP2 = frozenset({"refuse", "fail", "go away", "go away late"})


@dataclass(frozen=True)
class Fault:
    """A fault: its `steps` in turn, and the row of the table that it proves."""

    name: str
    row: Row
    at: str
    """The place: "connect", "tunnel", "tls" or "request"."""
    steps: tuple[str, ...] = ()
    lasts: bool = False
    """True if it never ends; any other happens a few times, and then the request goes through."""
    reused: bool = False
    """True if the connection has served a request before."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that may hold: a reset may overtake the response before it, and then nobody has seen that."""
        return (self.row, Row.UNKNOWN) if self.row is Row.DONE and "reset" in self.steps else (self.row,)

    @property
    def executes(self) -> bool:
        """Return whether the server executes the request."""
        return "execute" in self.steps

    @property
    def stalls(self) -> bool:
        """Return whether only a timeout of the client ends it."""
        return "stall" in self.steps

    def happens(self, route: str, http2: bool) -> bool:
        """Return whether it can happen on a route, to a client that speaks that protocol."""
        if (ONLY_HTTP1 if http2 else ONLY_HTTP2) & set(self.steps):
            return False
        return self.at in ("connect", "request") or route in ("connect", self.at)


FAULTS = (
    Fault("nobody listens", Row.NOT_EXECUTED, "connect", lasts=True),
    Fault("the proxy wants a password", Row.PERMANENT, "tunnel", ("407",)),
    Fault("the proxy finds no server", Row.NOT_EXECUTED, "tunnel", ("502",)),
    Fault("the proxy is overloaded", Row.NOT_EXECUTED, "tunnel", ("503",)),
    Fault("the proxy hangs up", Row.NOT_EXECUTED, "tunnel", ("close",)),
    Fault("the proxy resets", Row.NOT_EXECUTED, "tunnel", ("reset",)),
    Fault("no TLS is spoken", Row.NOT_EXECUTED, "tls", ("garbage",)),
    Fault("the handshake is refused", Row.NOT_EXECUTED, "tls", ("alert",)),
    Fault("the handshake is cut", Row.NOT_EXECUTED, "tls", ("close",)),
    Fault("the handshake is reset", Row.NOT_EXECUTED, "tls", ("reset",)),
    Fault("the request is lost", Row.UNKNOWN, "request", ("close",)),
    Fault("the response is lost", Row.UNKNOWN, "request", ("execute", "close")),
    Fault("the response is reset", Row.UNKNOWN, "request", ("execute", "reset")),
    Fault("the response to a later request is lost", Row.UNKNOWN, "request", ("execute", "close"), reused=True),
    Fault("the response to a later request is reset", Row.UNKNOWN, "request", ("execute", "reset"), reused=True),
    Fault("the response takes too long", Row.UNKNOWN, "request", ("execute", "stall")),
    Fault("nonsense comes back", Row.UNKNOWN, "request", ("execute", "nonsense")),
    Fault("503 before", Row.UNKNOWN, "request", ("503",)),
    Fault("503 after", Row.UNKNOWN, "request", ("execute", "503")),
    Fault("100, then lost", Row.UNKNOWN, "request", ("execute", "100", "close")),
    Fault("100, then reset", Row.UNKNOWN, "request", ("execute", "100", "reset")),
    Fault("the body is cut", Row.DONE, "request", ("execute", "200", "close")),
    Fault("the body is reset", Row.DONE, "request", ("execute", "200", "reset")),
    Fault("the body stalls", Row.DONE, "request", ("execute", "200", "stall")),
    Fault("the chunked body is cut", Row.DONE, "request", ("execute", "200 chunked", "close")),
    Fault("the long body is cut", Row.DONE, "request", ("execute", "200 long", "close")),
    Fault("the stream is refused", Row.NOT_EXECUTED, "request", ("refuse",)),
    Fault("the stream fails", Row.UNKNOWN, "request", ("execute", "fail")),
    Fault("the server goes away", Row.NOT_EXECUTED, "request", ("go away",)),
    Fault("the stream is refused after its response began", Row.DONE, "request", ("execute", "200", "refuse")),
    Fault("the server goes away after the response began", Row.DONE, "request", ("execute", "200", "go away")),
    Fault("the server goes away late", Row.DONE, "request", ("execute", "200", "go away late"), reused=True),
    Fault("a stream of unknown length is refused late", Row.DONE, "request", ("execute", "200 chunked", "refuse")),
    Fault("the stream of a long response is refused late", Row.DONE, "request", ("execute", "200 long", "refuse")),
)
