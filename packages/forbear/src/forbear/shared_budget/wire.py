"""The line protocol of Redis (RESP2), as far as the script needs it: commands out, small responses in."""

from forbear.shared_budget.script import Command, NonsenseResponse

LONGEST = 16_384
"""The longest response in bytes; the script's own has less than a hundred."""

_LONGEST_LINE = 1024
_MOST_ITEMS = 16


class ErrorResponse(Exception):
    """An error response of the server, such as "NOAUTH Authentication required."."""


def encode(command: Command) -> bytes:
    """Return the bytes of a command."""
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)


def decode(data: bytes | bytearray, start: int = 0, *, nested: bool = False) -> tuple[object, int] | None:
    """Return the response that begins at `start` and the index of its end, None if it has not arrived in full.

    An error response is returned as an ErrorResponse, a text as bytes. Raises NonsenseResponse for what is no RESP2,
    and for a response of more than 16 KiB.
    """
    line_end = data.find(b"\r\n", start, start + _LONGEST_LINE)
    if line_end < 0:
        if len(data) - start >= _LONGEST_LINE:
            raise NonsenseResponse("a line without an end")
        if data[start : start + 1] not in (b"", b"+", b"-", b":", b"$", b"*"):
            raise NonsenseResponse("a response that is not of the Redis protocol")
        return None
    kind, line, end = data[start : start + 1], bytes(data[start + 1 : line_end]), line_end + 2
    if kind == b"+":
        return line, end
    if kind == b"-":
        return ErrorResponse(line.decode(errors="backslashreplace")), end
    number = _number(line)
    if kind == b":":
        return number, end
    if kind == b"$":
        return _text(data, number, end)
    if kind == b"*" and not nested:
        return _items(data, number, end)
    raise NonsenseResponse("a response that is not of the Redis protocol")


def _number(line: bytes) -> int:
    digits = line[1:] if line[:1] == b"-" else line
    if not digits.isdigit() or len(digits) > 18:
        raise NonsenseResponse("a response that is not of the Redis protocol")
    return int(line)


def _text(data: bytes | bytearray, length: int, end: int) -> tuple[object, int] | None:
    if length == -1:
        return None, end
    if not 0 <= length <= LONGEST:
        raise NonsenseResponse("a response that is too long")
    if len(data) < end + length + 2:
        return None
    if data[end + length : end + length + 2] != b"\r\n":
        raise NonsenseResponse("a response that is not of the Redis protocol")
    return bytes(data[end : end + length]), end + length + 2


def _items(data: bytes | bytearray, count: int, end: int) -> tuple[object, int] | None:
    if not -1 <= count <= _MOST_ITEMS:
        raise NonsenseResponse("a response that is too long")
    items: list[object] = []
    for _ in range(count):
        item = decode(data, end, nested=True)
        if item is None:
            return None
        items.append(item[0])
        end = item[1]
    return items, end
