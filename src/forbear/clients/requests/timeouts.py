"""The timeouts that requests accepts: a number, a pair of them, urllib3's Timeout, or None."""

import urllib3

Timeout = float | tuple[float | None, float | None] | urllib3.Timeout | None


def bounded(timeout: Timeout, limit: float | None) -> Timeout:
    """The timeouts of an attempt that may take `limit` seconds."""
    if limit is None:
        return timeout
    if isinstance(timeout, urllib3.Timeout):
        shorter = timeout.clone()
        shorter.total = _least(timeout.total, limit)
        return shorter
    connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return _least(connect, limit), _least(read, limit)


def _least(own: object, limit: float) -> float:
    return min(own, limit) if isinstance(own, int | float) else limit
