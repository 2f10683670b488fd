"""Errors that leave blocks of `safe_to_repeat`: they carry the requests that those vouched for."""

import pytest

from forbear.http.request import Request
from forbear.run.vouching import is_vouched, is_vouched_within, safe_to_repeat

A, B = "POST https://a.example/search", "POST https://b.example/search"
AT_A, AT_B = Request("POST", "a.example", "/search"), Request("POST", "b.example", "/search")


def test_a_block_covers_what_its_patterns_match() -> None:
    """One of several patterns is enough, also in a nested block; at the end nothing is covered."""
    assert not is_vouched(AT_A)
    with safe_to_repeat(A) as opened:
        assert isinstance(opened, safe_to_repeat)
        assert (is_vouched(AT_A), is_vouched(AT_B)) == (True, False)
        with safe_to_repeat("PUT https://c.example/*", B):
            assert (is_vouched(AT_A), is_vouched(AT_B)) == (True, True)
        assert (is_vouched(AT_A), is_vouched(AT_B)) == (True, False)
    assert not is_vouched(AT_A)


def test_an_error_carries_the_words_of_the_blocks_that_it_leaves() -> None:
    """Those of inner and outer blocks add up, each once; another block says nothing of the error."""
    error = ValueError("lost")
    with safe_to_repeat(B):
        assert not is_vouched_within(AT_B, error)
    with pytest.raises(ValueError, match="lost"), safe_to_repeat(A):
        raise error
    assert (is_vouched_within(AT_A, error), is_vouched_within(AT_B, error)) == (True, False)
    assert not is_vouched_within(Request("GET", "a.example", "/search"), error)
    with pytest.raises(ValueError, match="lost"), safe_to_repeat(A, B), safe_to_repeat(A):
        raise error
    assert (is_vouched_within(AT_A, error), is_vouched_within(AT_B, error)) == (True, True)
    [patterns] = [value for name, value in vars(error).items() if "safe" in name]
    assert [pattern.text for pattern in patterns] == [A, B]
    assert not is_vouched_within(AT_A, ValueError("another"))


def test_what_a_block_needs() -> None:
    """The texts say what a pattern looks like."""
    with pytest.raises(TypeError) as caught:
        safe_to_repeat()
    assert str(caught.value) == (
        '`safe_to_repeat` needs at least one pattern, such as "POST https://api.example.com/search"'
    )
    with pytest.raises(ValueError, match=r"^`safe_to_repeat` must hold patterns of a method"):
        safe_to_repeat(A, "everything")
