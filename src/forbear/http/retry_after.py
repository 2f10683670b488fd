"""Reading Retry-After (RFC 9110 §10.2.3) as seconds to wait. It reads no clock."""


def parse(value: str, date: str | None = None, now: float | None = None) -> float | None:
    """The seconds that `value` asks to wait, None where it cannot be read.

    `value` is a number of seconds or an HTTP-date in any of its three forms. A date is read against `date`, the
    reply's own Date header, so that a wrong local clock does no harm; against `now`, the local wall clock in epoch
    seconds, only where there is no such date. A date in the past is 0.0. Fractions of a second, which the RFC does not
    have but servers send, are read too; negative numbers are not. Of several values, as a server and a proxy before it
    may send them, the longest wait counts.
    """
    # A comma is in dates, too, but only after the day of the week, which nobody needs.
    found = [_seconds(part.strip(), date, now) for part in value.split(",")]
    return max((seconds for seconds in found if seconds is not None), default=None)


def _seconds(value: str, date: str | None, now: float | None) -> float | None:
    if _is_number(value):
        return float(value)
    until = _epoch(value)
    since = _epoch(date or "")
    if since is None:
        since = now
    if until is None or since is None:
        return None
    return max(0.0, until - since)


def _is_number(text: str) -> bool:
    whole, dot, fraction = text.partition(".")
    return text.isascii() and whole.isdigit() and (fraction.isdigit() if dot else True)


def _epoch(text: str) -> float | None:
    from datetime import UTC  # on a rare path, and not cheap to import
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # The asctime form names no zone; all HTTP-dates are in UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
