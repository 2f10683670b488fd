"""Parse Retry-After (RFC 9110 §10.2.3) as seconds to wait. It reads no clock."""

_LONGEST = 1024
"""Characters of a field that are looked at; what is cut off a number that long makes no difference."""
_LONGEST_DATE = 64
_MOST = 16
"""Parts between commas; a date has one comma itself."""


def parse(value: str, date: str | None = None, now: float | None = None) -> float | None:
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
