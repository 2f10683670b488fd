"""The verdict on a reply by its status, with the wall clock for one that carries no date. It knows no service."""

import time
from collections.abc import Container, Mapping

from forbear.core.verdict import Verdict
from forbear.http import status as _status


def verdict(
    status: int, headers: Mapping[str, str], transient: Container[int] = _status.TRANSIENT_STATUSES
) -> Verdict | None:
    """What a reply means where the statuses in `transient` are worth another try; None where it is no error."""
    now = time.time() if "retry-after" in headers and "date" not in headers else None
    return _status.verdict(status, headers, transient, now)
