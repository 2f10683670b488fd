"""The meaning of a gRPC call's end: its status code, and its details.

`parts`, `submessages` and `number` read just enough of the protobuf wire format; broken data reads as empty.
"""

from collections.abc import Container, Iterator

from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.grpc import codes
from forbear.grpc.call import Metadata

_DETAILS = "grpc-status-details-bin"
_REQUEST_INFO = "google.rpc.RequestInfo"
_MAY_BE_THROTTLED = (codes.RESOURCE_EXHAUSTED, codes.UNAVAILABLE)
_THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


def verdict(code: int, transient: Container[int] = codes.TRANSIENT, *, read: bool = False) -> Verdict | None:
    """Return the verdict on a gRPC status code, None for OK.

    The codes in `transient` are transient, all others permanent. ABORTED is a conflict: by definition the caller starts
    over at a higher level, with a new read. For a `read` it is transient. The verdict has no wait: see `forbear.waits`.
    """
    if code == codes.OK:
        return None
    if code == codes.ABORTED and not read:
        return CONFLICT
    if code not in transient and code != codes.ABORTED:
        return PERMANENT
    return _THROTTLED if code in _MAY_BE_THROTTLED else TRANSIENT


def request_info(metadata: Metadata) -> str | None:
    """Return the request id in the details of a status (RequestInfo) in trailing metadata, None if there is none."""
    for kind, content in details(metadata):
        if kind == _REQUEST_INFO:
            for request_id in submessages(content, 1):
                return request_id.decode("utf-8", "replace")
    return None


def details(metadata: Metadata) -> Iterator[tuple[str, bytes]]:
    """Yield the details of a status in trailing metadata, each as its type ("google.rpc.RetryInfo") and its bytes."""
    for name, value in metadata:
        if name.lower() == _DETAILS and isinstance(value, bytes):
            for packed in submessages(value, 3):
                kinds, contents = submessages(packed, 1), submessages(packed, 2)
                if kinds:
                    yield kinds[-1].decode("utf-8", "replace").rpartition("/")[2], contents[-1] if contents else b""


def retry_delay(retry_info: bytes) -> float | None:
    """Return the retry_delay of an encoded RetryInfo in seconds, None if it has none or a negative one."""
    for duration in submessages(retry_info, 1):
        values = dict(parts(duration))
        seconds, nanos = number(values.get(1, 0)), number(values.get(2, 0))
        return None if seconds < 0 or nanos < 0 else seconds + nanos / 1e9
    return None


_SIGN = 1 << 63


def parts(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of an encoded protobuf message in order, each as its number and its value.

    The value is an int for a varint, and bytes for all else: a text, a submessage or a number of fixed size. Returns an
    empty list for broken data.
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
    """Return the bytes of every occurrence of the field number `field` in the encoded message `data`."""
    return [value for number, value in parts(data) if number == field and isinstance(value, bytes)]


def number(value: int | bytes) -> int:
    """Return an unsigned varint as the signed 64-bit number that it encodes, 0 for bytes."""
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
