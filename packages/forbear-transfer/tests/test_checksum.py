"""CRC32C: known values, and joining without reading again."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_cloud.storage.model import crc32c_of
from forbear_transfer import checksum as module
from forbear_transfer.checksum import Crc32c


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", "AAAAAA=="), (b"123456789", "4waSgw=="), (bytes(32), "ipE2qg==")],
)
def test_it_is_the_checksum_of_the_service(data: bytes, text: str) -> None:
    """The check values of the algorithm, as the API writes them."""
    checksum = Crc32c()
    checksum.update(data)
    assert checksum.text == crc32c_of(data) == text
    assert checksum.size == len(data)


@given(st.lists(st.binary(max_size=300)))
def test_pieces_make_the_whole(pieces: list[bytes]) -> None:
    """However the bytes are cut, the checksum is that of all."""
    checksum = Crc32c()
    for piece in pieces:
        checksum.update(piece)
    assert checksum.text == crc32c_of(b"".join(pieces))


@given(st.lists(st.binary(max_size=300)))
def test_parts_are_joined_without_their_bytes(parts: list[bytes]) -> None:
    """The checksums and sizes of parts are enough for that of the whole."""
    whole = Crc32c()
    for part in parts:
        after = Crc32c()
        after.update(part)
        whole.join(after)
    assert whole.text == crc32c_of(b"".join(parts))
    assert whole.size == sum(map(len, parts))


@pytest.mark.parametrize("size", [1, 255, 65_537, 5_000_000])
def test_large_parts_are_joined(size: int) -> None:
    """The size of what comes after counts in all its bits."""
    before, after = b"before" * 1000, bytes(size - 1) + b"x"
    one, two = Crc32c(), Crc32c()
    one.update(before)
    two.update(after)
    one.join(two)
    assert one.text == crc32c_of(before + after)


def test_threads_that_join_for_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table that they fill together is right, and so is every result of each of them."""

    def joined() -> int:
        one = Crc32c(7, 6)
        one.join(Crc32c(9, (1 << 40) - 1))
        return one.value

    def work() -> None:
        start.wait()
        values.append(joined())

    right, table = joined(), list(module._zeros)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            monkeypatch.setattr(module, "_zeros", table[:1])
            start, values = threading.Barrier(4), list[int]()
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert values == [right] * 4
            assert module._zeros == table[: len(module._zeros)]
    finally:
        sys.setswitchinterval(interval)
