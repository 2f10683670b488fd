"""What a service is shown of a request, and what it answers; it knows no service and no client library."""

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from forbear.core.service import Judgement, Service
    from forbear.core.verdict import Verdict

    class HttpService(Service, Protocol):
        """The knowledge of one HTTP API: which operation a request is, and what its replies mean."""

        @property
        def token_header(self) -> str | None:
            """The header that carries a token equal on all attempts of a mutation, None where the API reads none."""
            ...

        def classify(self, request: "Request") -> Judgement:
            """The operation that a request asks for and whether it may be executed twice."""
            ...

        def verdict(
            self,
            judgement: Judgement,
            status: int,
            headers: Mapping[str, str],
            body: Callable[[], bytes] | None = None,
        ) -> "Verdict | None":
            """What a reply means, None where it is a success; `headers` has lower-case names.

            `body` reads the body of the reply, where the caller can; it is called only where the answer hangs on it.
            """
            ...


class Request(Record):
    """A request as it goes over the wire, reduced to what decides whether it may be repeated.

    `target` is the raw, still percent-encoded path with its query, as in the request line. `headers` has lower-case
    names. `body` is what is known of the content: None where it is not at hand (a stream), which never makes a request
    safer.
    """

    __slots__ = ("method", "host", "target", "headers", "body")

    method: str
    host: str
    target: str
    headers: "Mapping[str, str]"
    body: bytes | None

    def __init__(
        self, method: str, host: str, target: str, headers: "Mapping[str, str] | None" = None, body: bytes | None = b""
    ) -> None:
        set_ = object.__setattr__  # this constructor is on the happy path of every HTTP adapter
        set_(self, "method", method)
        set_(self, "host", host)
        set_(self, "target", target)
        set_(self, "headers", headers if headers is not None else {})
        set_(self, "body", body)


READS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that ask for no change ("safe" in the RFC)."""

IDEMPOTENT = frozenset({"PUT", "DELETE"})
"""Methods that change something and may be executed twice."""

_WRITES = frozenset({*IDEMPOTENT, "POST", "PATCH", "CONNECT"})

OVERRIDES = ("x-http-method-override", "x-http-method", "x-method-override")
"""Headers by which many servers let a request name another method than its own, in lower case."""


def method_overrides(headers: "Mapping[str, str]") -> list[str]:
    """The methods that override headers name, in upper case; headers have lower-case names."""
    return [headers[name].strip().upper() for name in OVERRIDES if name in headers]


def danger(method: str) -> int:
    """0 for a read, 1 for an idempotent method, 2 for PATCH, which a precondition can guard, 3 for all others.

    Methods are compared by case, as the RFC has it.
    """
    if method in READS:
        return 0
    return 1 if method in IDEMPOTENT else 2 if method == "PATCH" else 3


def method_label(method: str) -> str:
    """Return the method for metrics: "_OTHER" for those outside RFC 9110 and PATCH, of which there are many."""
    return method if method in READS or method in _WRITES else "_OTHER"
