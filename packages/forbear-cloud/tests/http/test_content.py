"""Content in pieces equals its bytes, however it is cut, joined, corrupted or shortened."""

import base64
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from forbear_cloud.http.content import Content, Growing, content_of, join_contents

PIECES = st.lists(st.binary(max_size=5), max_size=6)


def hashes(data: bytes) -> tuple[str, str]:
    """Return CRC32C (bit by bit, as defined) and MD5, as the API writes them."""
    crc32c = 0xFFFFFFFF
    for byte in data:
        crc32c ^= byte
        for _ in range(8):
            crc32c = crc32c >> 1 ^ (0x82F63B78 if crc32c & 1 else 0)
    big_endian = (crc32c ^ 0xFFFFFFFF).to_bytes(4, "big")
    return base64.b64encode(big_endian).decode(), base64.b64encode(hashlib.md5(data).digest()).decode()


@given(PIECES, st.integers(0, 31), st.none() | st.integers(0, 31))
def test_a_cut_copies_nothing(pieces: list[bytes], start: int, end: int | None) -> None:
    """A cut of the content is a cut of its bytes, with their hashes, and copies nothing."""
    whole, content = b"".join(pieces), Content(pieces)
    cut = content.cut(start, end)
    assert (bytes(cut), len(cut)) == (whole[start:end], len(whole[start:end]))
    assert (cut.crc32c, cut.md5) == hashes(whole[start:end])
    for piece in cut.pieces:
        assert any(piece is each or (isinstance(piece, memoryview) and piece.obj is each) for each in pieces)


@given(st.lists(PIECES, max_size=3))
def test_joined_contents_are_their_bytes(contents: list[list[bytes]]) -> None:
    """Joined contents are their bytes one after the other."""
    whole = b"".join(b"".join(pieces) for pieces in contents)
    content = join_contents(Content(pieces) for pieces in contents)
    assert (bytes(content), len(content)) == (whole, len(whole))
    assert bytes(content_of(whole)) == bytes(content_of(content)) == whole


@given(st.lists(PIECES | st.integers(0, 20), max_size=6))
def test_hashes_on_arrival_are_those_of_the_whole(steps: list[list[bytes] | int]) -> None:
    """Hashes computed on arrival are those of the whole, even after bytes were dropped."""
    whole, growing = b"", Growing()
    for step in steps:
        if isinstance(step, int):
            growing.keep(step)
            whole = whole[:step]
        else:
            growing.add(Content(step).cut(1))
            whole += b"".join(step)[1:]
        content = growing.content()
        assert (bytes(content), len(growing)) == (whole, len(whole))
        assert (content.crc32c, content.md5) == hashes(whole)
