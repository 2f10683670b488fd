"""Judge an HTTP response by its status, and parse its Retry-After header (RFC 9110 §10.2.3).

And read the refusals of SOCKS proxies (RFC 1928): those that pass, and those that last. The clients put the proxy's
code into words, most of them those of RFC 1928. A proxy says all this before it gets any byte of the request, so the
request was not executed.
"""

from collections.abc import Container

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict

TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of errors that may go away: nearly all shipped clients retry these."""

THROTTLED_STATUSES = frozenset({429, 503})
"""Statuses by which a server says that it is overloaded."""

_THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)

_LONGEST = 1024
"""The number of characters of a Retry-After header that are read; a longer number would make no difference."""
_LONGEST_DATE = 64
_MOST = 16
"""The number of comma-separated parts of a Retry-After header that are read; a date has one comma itself."""


def verdict(status: int, transient: Container[int] = TRANSIENT_STATUSES) -> Verdict | None:
    """Return the verdict on a response by its status, None if it is no error (a status below 400).

    The statuses in `transient` are transient, all other errors permanent. 429 and 503 are `throttled`. The verdict has
    no wait: see `forbear.waits`.
    """
    if status < 400:
        return None
    if status not in transient:
        return PERMANENT
    return _THROTTLED if status in THROTTLED_STATUSES else TRANSIENT


def parse_retry_after(value: str, date: str | None = None, now: float | None = None) -> float | None:
    """Parse a Retry-After header and return the seconds to wait, None if it cannot be read.

    `value` is a number of seconds or an HTTP-date in any of its three forms. A date is read against `date`, the
    response's own Date header, so that a wrong local clock does no harm. Only if that is missing or unreadable is a
    date read against `now`, the local wall clock in epoch seconds; without both, the date is ignored. A date in the
    past is 0.0. Fractions of a second are read as well, although the RFC has none; negative numbers are ignored. Where
    a server and a proxy each sent a value (joined by a comma), the longest wait counts.
    """
    # A date has a comma, too, but only after the day of the week, which is not needed.
    parts = [part.strip() for part in value[:_LONGEST].split(",", _MOST)[:_MOST]]
    waits = [float(part) for part in parts if _is_number(part)]
    moments = [moment for part in parts if (moment := epoch(part)) is not None]
    if moments:
        since = epoch(date or "")
        if since is None:
            since = now
        if since is not None:
            waits.append(max(0.0, max(moments) - since))
    return max(waits, default=None)


def reason(status: int) -> str:
    """Return a status with its reason phrase, "503 Service Unavailable"; the number alone if it has none.

    >>> status_phrase(503)
    '503 Service Unavailable'
    """
    from http import HTTPStatus  # on a rare path, and expensive to import

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _is_number(text: str) -> bool:
    whole, dot, fraction = text.partition(".")
    return text.isascii() and whole.isdigit() and (fraction.isdigit() if dot else True)


def epoch(text: str) -> float | None:
    """Parse an HTTP-date as epoch seconds; None for any text that is no date, or longer than 64 characters.

    Other dates that `email.utils` can read count as well. A date without a zone is in UTC.
    """
    if not text or len(text) > _LONGEST_DATE or text.isdigit():
        return None
    from datetime import UTC  # on a rare path, and expensive to import
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        # The asctime form names no zone; all HTTP-dates are in UTC.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


_LASTING = ("ruleset", "not supported", "authentication", "username", "identd")
"""Words of the refusals that no other attempt changes: a rule, a command or address type, credentials."""


def verdict_of_refusal(text: str) -> Verdict:
    """Return the verdict on a failure of the proxy by its text: PERMANENT for a refusal that lasts, else NOT_EXECUTED.

    The text must not have the name of a host. The target that is unreachable or refuses, an expired TTL, a general
    failure and a proxy that hangs up all pass.
    """
    lower = text.lower()
    return PERMANENT if any(words in lower for words in _LASTING) else NOT_EXECUTED
