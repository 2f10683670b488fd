"""Just enough of the protobuf wire format to read a few known fields; whatever is broken reads as empty."""

_SIGN = 1 << 63


def parts(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message in order: the number of each, with an int or the bytes of a text or submessage."""
    found: list[tuple[int, int | bytes]] = []
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
            found.append((tag >> 3, value))
    except IndexError:
        return []
    return found


def submessages(data: bytes, field: int) -> list[bytes]:
    """The contents of a field of texts or messages."""
    return [value for number, value in parts(data) if number == field and isinstance(value, bytes)]


def number(value: int | bytes) -> int:
    """A varint read as a signed number; 0 for anything else."""
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
