"""What HTTP statuses mean: their names, which are transient, and the verdict on a reply. It knows no service."""

from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http import retry_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that another try may turn into a success: what nearly every shipped client takes."""

THROTTLED_STATUSES = frozenset({429, 503})
"""Statuses by which a server says that it has too much to do."""

_THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


def verdict(
    status: int,
    headers: "Mapping[str, str]",
    transient: "Container[int]" = TRANSIENT_STATUSES,
    now: float | None = None,
) -> Verdict | None:
    """What a reply means, None where it is no error (below 400).

    `headers` has lower-case names; `now` is the wall clock in epoch seconds, needed only for a date in a reply that
    carries none itself. A transient verdict carries the server's Retry-After.
    """
    if status < 400:
        return None
    if status not in transient:
        return PERMANENT
    throttled = status in THROTTLED_STATUSES
    seconds = asked(headers, now)
    if seconds is None:
        return _THROTTLED if throttled else TRANSIENT
    return Verdict(Kind.TRANSIENT, retry_after=seconds, throttled=throttled)


def asked(headers: "Mapping[str, str]", now: float | None = None) -> float | None:
    """The seconds that a reply asks to wait by its Retry-After, None where it does not; `now` as for `verdict`."""
    value = headers.get("retry-after")
    return None if value is None else retry_after.parse(value, headers.get("date"), now)


def reason(status: int) -> str:
    """A status with its name for people: "503 Service Unavailable"; the number alone where it has no name."""
    from http import HTTPStatus  # on a rare path, and not cheap to import

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
