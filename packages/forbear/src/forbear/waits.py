"""Find the wait that a server asks for, in the headers, the metadata or the body of its response.

Read are Retry-After (RFC 9110 §10.2.3) and its forms in milliseconds, gRPC's pushback (gRFC A6), RetryInfo
(google/rpc/error_details.proto) in metadata and in JSON and protobuf bodies, the RateLimit fields of the IETF's draft
(draft-ietf-httpapi-ratelimit-headers), and headers whose unit the API is known to have. docs/waits.md lists them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter

from forbear.core.check import INFINITY, is_list, is_mapping
from forbear.core.verdict import Verdict
from forbear.grpc import status as grpc_status
from forbear.http.status import epoch, parse_retry_after
from forbear.text.duration import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.grpc.call import Metadata

Wait = tuple[float, str]
"""The seconds to wait, infinity for "do not retry", and the name of the header or field that asks for them."""

MOST_BODY = 64 * 1024
"""The most bytes of a body in which a wait is looked for; a longer body has none."""
BODY_STATUSES = frozenset({429, 500, 503})

_EVERYWHERE = {"retry-after-ms": "milliseconds", "x-ms-retry-after-ms": "milliseconds"}
_AWS = {"x-amz-retry-after": "milliseconds"}
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".on.aws")
_RETRY_INFO = "google.rpc.RetryInfo"
_JSON_OR_PROTO = r"(?i)application/(?:[\w.-]+\+)?(?:json|x-protobuf|protobuf)\b"  # few responses need the patterns

_LONGEST = 1024
"""The number of characters of a header that are read."""
_MOST = 16
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_QUOTA = r";\s*(r|t)\s*=\s*([0-9]+)(?![0-9.])"
_RESET = r"reset(?:-after)?(?=-|$)"


def add_wait(verdict: Verdict, wait: Wait | None) -> Verdict:
    """Return a verdict that asks for a retry with the `wait`, unless it has a longer one; any other as it is.

    >>> from forbear.verdicts import TRANSIENT
    >>> add_wait(TRANSIENT, find_wait({"retry-after": "7"}, 503)).retry_after
    7.0
    """
    if wait is None or not verdict or (verdict.retry_after is not None and verdict.retry_after >= wait[0]):
        return verdict
    return verdict.replace(retry_after=wait[0], wait_from=wait[1])


def find_wait(
    headers: Mapping[str, str],
    status: int | None = None,
    *,
    host: str = "",
    units: Mapping[str, str] = {},
    body: Callable[[], bytes] | None = None,
    now: Callable[[], float] | None = None,
) -> Wait | None:
    """Return the wait that a failed response asks for, None if it asks for none that can be read.

    `headers` has lower-case names. `units` has the units of the headers that this API uses beyond the usual ones, by
    `UNITS`. A header of a quota, whose name has "reset" in it, counts only if its quota is used up: if the header with
    "remaining" in that place is 0, or is missing in a response with the status 429. `host` decides which headers of
    one vendor count. `body` reads the body; it is called only for JSON and protobuf bodies of `BODY_STATUSES` with at
    most `MOST_BODY` bytes. Absolute times are read against the response's own Date, without one against `now`.

    Of several waits the longest counts. A finer one replaces it if it is the same, rounded up to whole seconds.

    >>> find_wait({"retry-after": "7"}, 503)
    (7.0, 'Retry-After')
    """
    waits = [*_read_headers(headers, status, host, units, now), *_read_ratelimit(headers)]
    if body is not None and status is not None and may_ask_in_body(status, headers):
        asked = _read_body(headers, body)
        if asked is not None:
            waits.append((asked, "RetryInfo"))
    if not waits:
        return None
    longest = max(waits, key=itemgetter(0))
    seconds = longest[0]
    finer = [wait for wait in waits if wait[0] < seconds <= wait[0] + 1 and seconds == -(-wait[0] // 1)]
    return max(finer, key=itemgetter(0), default=longest)


def may_ask_in_body(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether the body of a response may ask for a wait, by its status, its type and its length."""
    if status not in BODY_STATUSES or not re.match(_JSON_OR_PROTO, headers.get("content-type", "").strip()[:_LONGEST]):
        return False
    length = headers.get("content-length", "")
    return not (length.isascii() and length.isdigit()) or int(length[:9]) <= MOST_BODY


def find_wait_of_rpc(metadata: "Metadata") -> Wait | None:
    """Return the wait that the trailing metadata of a failed RPC asks for, None if it asks for none.

    gRPC's own pushback (grpc-retry-pushback-ms) is in milliseconds; a negative or invalid value means that no retry is
    wanted. Without it, the RetryInfo in the details of the status counts.
    """
    listed = list(metadata)
    for name, value in listed:
        if name.lower() == "grpc-retry-pushback-ms":
            text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
            plain = text.isascii() and text.isdigit() and len(text) < 16
            return int(text) / 1000 if plain else INFINITY, "grpc-retry-pushback-ms"
    for kind, content in grpc_status.details(listed):
        if kind == _RETRY_INFO and (seconds := grpc_status.retry_delay(content)) is not None:
            return seconds, "RetryInfo"
    return None


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(_NUMBER, text) else None


def _parse_rfc3339(text: str) -> float | None:
    """Parse a moment such as "2026-01-31T09:00:00Z" as epoch seconds, None if it is none or has no zone."""
    if not 20 <= len(text) <= 40:
        return None
    from datetime import datetime  # on a rare path, and expensive to import

    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


UNITS: "Mapping[str, tuple[Callable[[str], float | None], float, bool]]" = {
    "seconds": (_parse_number, 1, False),
    "milliseconds": (_parse_number, 1000, False),
    "duration": (parse_duration, 1, False),
    "epoch": (_parse_number, 1, True),
    "epoch_milliseconds": (_parse_number, 1000, True),
    "rfc3339": (_parse_rfc3339, 1, True),
}
"""The units of headers: how to parse a value, how many of it are a second, and whether it is a moment."""


def _read_headers(
    headers: Mapping[str, str],
    status: int | None,
    host: str,
    units: Mapping[str, str],
    now: Callable[[], float] | None,
) -> Iterator[Wait]:
    value = headers.get("retry-after")
    if value is not None:
        date = headers.get("date")
        seconds = parse_retry_after(value, date, None if date is not None or now is None else now())
        if seconds is None and date is not None and now is not None:
            seconds = parse_retry_after(value, None, now())  # the Date cannot be read
        if seconds is not None:
            yield seconds, "Retry-After"
    known = {**_EVERYWHERE, **units}
    if host.lower().partition(":")[0].endswith(_AWS_HOSTS):
        known |= _AWS
    for name, unit in known.items():
        text = headers.get(name)
        if text is not None and _is_used_up(headers, name, status):
            for part in text[:_LONGEST].split(",", _MOST)[:_MOST]:
                seconds = _parse(part.strip(), unit, headers, now)
                if seconds is not None:
                    yield seconds, name


def _parse(text: str, unit: str, headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    parse, per_second, is_moment = UNITS[unit]
    value = parse(text)
    if value is None:
        return None
    if not is_moment:
        return value / per_second
    since = epoch(headers.get("date", ""))
    if since is None:
        since = None if now is None else now()
    return None if since is None else max(0.0, value / per_second - since)


def _is_used_up(headers: Mapping[str, str], name: str, status: int | None) -> bool:
    """Return whether the header `name` speaks of a quota of which nothing is left, or of no quota."""
    remaining, quotas = re.subn(_RESET, "remaining", name, count=1)
    if not quotas:
        return True
    left = headers.get(remaining)
    return status == 429 if left is None else _parse_number(left.strip()[:_LONGEST]) == 0


def _read_ratelimit(headers: Mapping[str, str]) -> Iterator[Wait]:
    """Yield the waits of the RateLimit fields, in seconds, of the quotas of which nothing is left."""
    for policy in headers.get("ratelimit", "")[:_LONGEST].split(",", _MOST)[:_MOST]:
        quota = {name: float(number) for name, number in re.findall(_QUOTA, policy)}
        if quota.get("r") == 0 and "t" in quota:
            yield quota["t"], "RateLimit"
    seconds = _parse_number(headers.get("ratelimit-reset", "").strip()[:_LONGEST])
    if seconds is not None and headers.get("ratelimit-remaining", "").strip() == "0":
        yield seconds, "RateLimit-Reset"


def _read_body(headers: Mapping[str, str], body: Callable[[], bytes]) -> float | None:
    """Return the seconds of the RetryInfo in an error's body: JSON, an object or a list, or google.rpc.Status."""
    content = body()
    if not content or len(content) > MOST_BODY:
        return None
    if "json" not in headers.get("content-type", "")[:_LONGEST].lower():
        found = find_wait_of_rpc([("grpc-status-details-bin", content)])
        return None if found is None else found[0]
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return max(_find_delays(document), default=None)


def _find_delays(document: "Any") -> "Iterator[float]":
    """Yield the delays of the RetryInfo in a JSON error, or in a list of them: "3.5s", or an object of seconds."""
    errors: list[Any] = document[:_MOST] if is_list(document) else [document]
    for error in errors:
        inner: Any = error.get("error") if is_mapping(error) else None
        details: Any = inner.get("details") if is_mapping(inner) else None
        for detail in details[:_MOST] if is_list(details) else ():
            if is_mapping(detail) and str(detail.get("@type"))[:_LONGEST].rpartition("/")[2] == _RETRY_INFO:
                seconds = _parse_delay(detail.get("retryDelay"))
                if seconds is not None:
                    yield seconds


def _parse_delay(delay: "Any") -> float | None:
    """Return the seconds of a JSON duration: "53s", or {"seconds": 53, "nanos": 0}; None for anything else."""
    if isinstance(delay, str):
        text = delay[:_LONGEST]
        return _parse_number(text[:-1]) if text.endswith("s") else None
    if not is_mapping(delay):
        return None
    parts = [_parse_number(str(delay.get(name, 0))[:_LONGEST]) for name in ("seconds", "nanos")]
    seconds, nanos = parts
    return None if seconds is None or nanos is None else seconds + nanos / 1e9
