"""A body that may have to start over takes little memory, whatever its length."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.exchange.http.responses import KEPT, HandedOut

PINNED = {"etag": '"one"'}


@given(st.lists(st.binary(max_size=5), max_size=6), st.sampled_from([0, 10, KEPT, KEPT + 1]))
def test_the_hash_is_that_of_all_bytes_however_they_came(chunks: list[bytes], size: int) -> None:
    """Chunks of any size, kept or hashed, prove the same; another byte proves something else."""
    long = bytes(size)
    body = b"".join(chunks) + long
    apart, whole, other = HandedOut(200, {}), HandedOut(200, {}), HandedOut(200, {})
    for chunk in (*chunks, long):
        apart.add(chunk)
    whole.add(body)
    other.add(body + b"!")
    assert apart.count == whole.count == len(body)
    assert apart.digest() == whole.digest() != other.digest()
    assert whole.digest() is not None


@pytest.mark.parametrize("size", [10, KEPT + 1])
def test_a_validator_needs_no_hash(size: int) -> None:
    """A response that is pinned by a validator is not hashed, short or long."""
    handed_out = HandedOut(200, PINNED)
    handed_out.add(bytes(size))
    handed_out.add(b"more")
    assert (handed_out.count, handed_out.digest()) == (size + 4, None)


@pytest.mark.parametrize("headers", [{}, PINNED], ids=["hashed", "pinned"])
def test_memory_is_bounded(headers: dict[str, str]) -> None:
    """Of sixteen mebibytes hardly more than what is kept at first, and its hash, is there at any time."""
    handed_out = HandedOut(200, headers)
    tracemalloc.start()
    try:
        for number in range(256):
            handed_out.add(bytes([number]) * 65536)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert handed_out.count == 16 * 1024**2
    assert peak < 3 * KEPT
    handed_out.forget()
