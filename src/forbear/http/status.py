"""What HTTP statuses mean: their names, which are transient, and the verdict on a reply. It knows no service."""

from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict

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
    seconds = retry_after(headers, now)
    if seconds is None:
        return _THROTTLED if throttled else TRANSIENT
    return Verdict(Kind.TRANSIENT, retry_after=seconds, throttled=throttled)


def retry_after(headers: "Mapping[str, str]", now: float | None = None) -> float | None:
    """The seconds that a reply asks to wait by its Retry-After, None where it does not; `now` as for `verdict`."""
    value = headers.get("retry-after")
    return None if value is None else parse_retry_after(value, headers.get("date"), now)


def reason(status: int) -> str:
    """A status with its name for people: "503 Service Unavailable"; the number alone where it has no name."""
    from http import HTTPStatus  # on a rare path, and not cheap to import

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


_LONGEST = 1024
"""Characters of a field that are looked at; what is cut off a number that long makes no difference."""
_LONGEST_DATE = 64
_MOST = 16
"""Parts between commas; a date has one comma itself."""


def parse_retry_after(value: str, date: str | None = None, now: float | None = None) -> float | None:
    """Return the seconds that `value` asks to wait, None where it cannot be read.

    `value` is a number of seconds or an HTTP-date in any of its three forms. A date is read against `date`, the
    response's own Date header, so that a wrong local clock does no harm; against `now`, the local wall clock in epoch
    seconds, only where there is no such date. A date in the past is 0.0. Fractions of a second, which the RFC does not
    have but servers send, are read too; negative numbers are not. Of several values, as a server and a proxy before it
    may send them, the longest wait counts.
    """
    # A comma is in dates, too, but only after the day of the week, which nobody needs.
    parts = [part.strip() for part in value[:_LONGEST].split(",", _MOST)[:_MOST]]
    waits = [float(part) for part in parts if _is_number(part)]
    moments = [moment for part in parts if (moment := _epoch(part)) is not None]
    if moments:
        since = _epoch(date or "")
        if since is None:
            since = now
        if since is not None:
            waits.append(max(0.0, max(moments) - since))
    return max(waits, default=None)


def _is_number(text: str) -> bool:
    whole, dot, fraction = text.partition(".")
    return text.isascii() and whole.isdigit() and (fraction.isdigit() if dot else True)


def _epoch(text: str) -> float | None:
    if not text or len(text) > _LONGEST_DATE or text.isdigit():
        return None
    from datetime import UTC  # on a rare path, and not cheap to import
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        # The asctime form names no zone; all HTTP-dates are in UTC.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
