"""CRC32C, the checksum of every object, computed piece by piece; checksums of adjacent ranges can be joined."""

import base64
from collections.abc import Callable
from typing import Self, cast

try:
    import google_crc32c
except ModuleNotFoundError as error:
    text = 'forbear_transfer needs google-crc32c; install it with: pip install "forbear[transfer]"'
    raise ModuleNotFoundError(text, name="google_crc32c") from error

_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed


class Crc32c:
    """The CRC32C of a sequence of bytes, as the number `value`, and the number of those bytes, `size`."""

    __slots__ = ("size", "value")

    def __init__(self, value: int = 0, size: int = 0) -> None:
        self.value = value
        self.size = size

    def update(self, data: bytes) -> None:
        """Extend the checksum by `data`, the bytes that follow."""
        self.value = _extend(self.value, data)
        self.size += len(data)

    def join(self, after: Self) -> None:
        """Extend the checksum by the bytes of which `after` is the checksum, without reading them again."""
        self.value = _shift(self.value, after.size) ^ after.value
        self.size += after.size

    @property
    def text(self) -> str:
        """The checksum as the API writes it: its 4 bytes, the most significant first, in base64."""
        return base64.b64encode(self.value.to_bytes(4, "big")).decode()


# A CRC is linear: appending n zero bytes multiplies the register by a 32 by 32 matrix over GF(2). The matrix for n
# bytes is a product of the matrices for 1, 2, 4, 8 … bytes.
def _shift(value: int, size: int) -> int:
    """Return the CRC32C `value` of some bytes, advanced past `size` zero bytes; XOR joins it with that of the next."""
    matrices = _zeros.copy()  # one of its own: other threads may extend the table at the same time
    if size.bit_length() > len(matrices):
        while size.bit_length() > len(matrices):
            matrices.append(_square(matrices[-1]))
        _zeros[:] = matrices
    for power in range(size.bit_length()):
        if size >> power & 1:
            value = _apply(matrices[power], value)
    return value


def _apply(matrix: list[int], value: int) -> int:
    result = 0
    for column in matrix:
        if not value:
            break
        if value & 1:
            result ^= column
        value >>= 1
    return result


def _square(matrix: list[int]) -> list[int]:
    return [_apply(matrix, column) for column in matrix]


def _one_byte() -> list[int]:
    matrix = [_POLYNOMIAL, *(1 << bit for bit in range(31))]  # for one zero bit
    for _ in range(3):
        matrix = _square(matrix)
    return matrix


_zeros = [_one_byte()]
"""The matrices for 1, 2, 4 … zero bytes, computed when first needed and replaced as a whole."""
