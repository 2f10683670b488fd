"""What RFC 9110 §9.2 says of methods, and the headers by which a request asks for another one. It knows no service."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

READS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that ask for no change ("safe" in the RFC)."""

IDEMPOTENT = frozenset({"PUT", "DELETE"})
"""Methods that change something and may be executed twice."""

_WRITES = frozenset({*IDEMPOTENT, "POST", "PATCH", "CONNECT"})

OVERRIDES = ("x-http-method-override", "x-http-method", "x-method-override")
"""Headers by which many servers let a request name another method than its own, in lower case."""


def overrides(headers: "Mapping[str, str]") -> list[str]:
    """The methods that override headers name, in upper case; headers have lower-case names."""
    return [headers[name].strip().upper() for name in OVERRIDES if name in headers]


def danger(method: str) -> int:
    """0 for a read, 1 for an idempotent method, 2 for PATCH, which a precondition can guard, 3 for all others.

    Methods are compared by case, as the RFC has it.
    """
    if method in READS:
        return 0
    return 1 if method in IDEMPOTENT else 2 if method == "PATCH" else 3


def label(method: str) -> str:
    """Return the method for metrics: "_OTHER" for those outside RFC 9110 and PATCH, of which there are many."""
    return method if method in READS or method in _WRITES else "_OTHER"
