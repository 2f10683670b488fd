"""CRC32C: the checksum that every object has, taken of pieces as they pass, and joined without reading them again."""

import base64
from collections.abc import Callable
from typing import Self, cast

try:
    import google_crc32c
except ModuleNotFoundError as error:
    text = 'forbear.transfer needs google-crc32c; install it with: pip install "forbear[transfer]"'
    raise ModuleNotFoundError(text, name="google_crc32c") from error

_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed


class Crc32c:
    """The checksum of the bytes seen so far, and how many they are."""

    __slots__ = ("size", "value")

    def __init__(self, value: int = 0, size: int = 0) -> None:
        self.value = value
        self.size = size

    def update(self, data: bytes) -> None:
        """See some more bytes."""
        self.value = _extend(self.value, data)
        self.size += len(data)

    def join(self, after: Self) -> None:
        """See the bytes that `after` has seen, without reading them again."""
        self.value = _shifted(self.value, after.size) ^ after.value
        self.size += after.size

    @property
    def text(self) -> str:
        """As the API writes it: base64 of the big-endian bytes."""
        return base64.b64encode(self.value.to_bytes(4, "big")).decode()


def crc32c_of(data: bytes) -> str:
    """The checksum of some bytes, as the API writes it."""
    return base64.b64encode(_extend(0, data).to_bytes(4, "big")).decode()


# A CRC is linear: to append n zero bytes is to multiply the register by a 32 by 32 matrix over GF(2), and the matrix
# of n bytes is a product of those of 1, 2, 4, 8 … bytes.
def _shifted(value: int, size: int) -> int:
    """The checksum after `size` more zero bytes, as far as it comes from the bytes before them."""
    power = 0
    while size:
        if power == len(_zeros):
            _zeros.append(_squared(_zeros[-1]))
        if size & 1:
            value = _applied(_zeros[power], value)
        size >>= 1
        power += 1
    return value


def _applied(matrix: list[int], value: int) -> int:
    result = 0
    for column in matrix:
        if not value:
            break
        if value & 1:
            result ^= column
        value >>= 1
    return result


def _squared(matrix: list[int]) -> list[int]:
    return [_applied(matrix, column) for column in matrix]


def _one_byte() -> list[int]:
    matrix = [_POLYNOMIAL, *(1 << bit for bit in range(31))]  # of one zero bit
    for _ in range(3):
        matrix = _squared(matrix)
    return matrix


_zeros = [_one_byte()]
"""The matrices of 1, 2, 4 … zero bytes, as far as they were needed."""
