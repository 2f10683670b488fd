"""The meaning of a gRPC call's end: its status code, its details, and the wait that the server asks for.

`parts`, `submessages` and `number` read just enough of the protobuf wire format; broken data reads as empty.
"""

from collections.abc import Container, Iterator

from forbear.core.verdict import CONFLICT, PERMANENT, Kind, Verdict
from forbear.grpc import codes
from forbear.grpc.call import Metadata

_DETAILS = "grpc-status-details-bin"
_PUSHBACK = "grpc-retry-pushback-ms"
_RETRY_INFO = "google.rpc.RetryInfo"
_MAY_BE_THROTTLED = (codes.RESOURCE_EXHAUSTED, codes.UNAVAILABLE)
_NEVER_AGAIN = float("inf")


def verdict(
    code: int, metadata: Metadata = (), transient: Container[int] = codes.TRANSIENT, *, read: bool = False
) -> Verdict | None:
    """Return the verdict on a status code, None for OK; the codes in `transient` are worth a retry.

    ABORTED is a conflict, except for a `read`: by definition the caller starts over at a higher level, with a new read.
    A transient verdict has the wait that the server asks for.
    """
    if code == codes.OK:
        return None
    if code == codes.ABORTED and not read:
        return CONFLICT
    if code not in transient and code != codes.ABORTED:
        return PERMANENT
    listed = list(metadata)
    return Verdict(Kind.TRANSIENT, retry_after=retry_delay(listed), throttled=code in _MAY_BE_THROTTLED)


def retry_delay(metadata: Metadata) -> float | None:
    """Return the seconds that the server asks to wait, infinity for "do not retry", None if it says nothing.

    gRPC's own pushback gives milliseconds; a negative or invalid value means that no retry is wanted. Without it, the
    RetryInfo in the details of the status counts.
    """
    listed = list(metadata)
    for name, value in listed:
        if name.lower() == _PUSHBACK:
            text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
            return int(text) / 1000 if text.isascii() and text.isdigit() and len(text) < 16 else _NEVER_AGAIN
    for kind, content in details(listed):
        if kind == _RETRY_INFO:
            return _delay(content)
    return None


def details(metadata: Metadata) -> Iterator[tuple[str, bytes]]:
    """Yield the details of a status: the type ("google.rpc.RetryInfo") and the content of each."""
    for name, value in metadata:
        if name.lower() == _DETAILS and isinstance(value, bytes):
            for packed in submessages(value, 3):
                kinds, contents = submessages(packed, 1), submessages(packed, 2)
                if kinds:
                    yield kinds[-1].decode("utf-8", "replace").rpartition("/")[2], contents[-1] if contents else b""


def _delay(retry_info: bytes) -> float | None:
    """Return the retry_delay of a RetryInfo, None if it has no valid one."""
    for duration in submessages(retry_info, 1):
        values = dict(parts(duration))
        seconds, nanos = number(values.get(1, 0)), number(values.get(2, 0))
        return None if seconds < 0 or nanos < 0 else seconds + nanos / 1e9
    return None


_SIGN = 1 << 63


def parts(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a message in order, each as its number and its value.

    The value is an int, or bytes for a text or a submessage.
    """
    fields: list[tuple[int, int | bytes]] = []
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            kind = tag & 7
            value: int | bytes
            if kind == 0:
                value, at = _varint(data, at)
            else:
                size = {1: 8, 5: 4}.get(kind, 0)
                if kind == 2:
                    size, at = _varint(data, at)
                if kind not in (1, 2, 5) or at + size > len(data):
                    return []
                value, at = data[at : at + size], at + size
            fields.append((tag >> 3, value))
    except IndexError:
        return []
    return fields


def submessages(data: bytes, field: int) -> list[bytes]:
    """Return the contents of every occurrence of a field that holds texts or messages."""
    return [value for number, value in parts(data) if number == field and isinstance(value, bytes)]


def number(value: int | bytes) -> int:
    """Return a varint as a signed number; 0 for anything else."""
    if isinstance(value, bytes):
        return 0
    return value - 2 * _SIGN if value >= _SIGN else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (2 * _SIGN - 1), at
    raise IndexError
