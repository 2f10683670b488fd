"""`safe_to_repeat`: which requests its scope covers."""

from collections.abc import Generator

import pytest

from forbear.http.request import Request
from forbear.run.vouching import is_vouched, safe_to_repeat

PATTERN = "POST https://a.example/search"
REQUEST = Request("POST", "a.example", "/search")
OTHER = Request("POST", "b.example", "/search")


def seen() -> bool:
    """Return whether the request is vouched for where this is called."""
    return is_vouched(REQUEST)


def test_the_block() -> None:
    """The scope covers its own block and what that calls, nested scopes add up, and other origins stay out."""
    assert not seen()
    with safe_to_repeat(PATTERN):
        assert seen()
        assert not is_vouched(OTHER)
        with safe_to_repeat("POST https://b.example/search", "PUT https://b.example/"):
            assert seen()
            assert is_vouched(OTHER)
        assert not is_vouched(OTHER)
    assert not seen()


def test_at_least_one_pattern() -> None:
    """A scope for everything does not exist, and a pattern must be right."""
    with pytest.raises(TypeError, match="at least one pattern"):
        safe_to_repeat()
    with pytest.raises(ValueError, match="`safe_to_repeat` must hold patterns of a method"):
        safe_to_repeat("*")


def test_a_generator_closed_within_another_scope() -> None:
    """The end of its scope leaves the other one open, and that one's end brings nothing back."""

    def inner() -> Generator[None]:
        with safe_to_repeat(PATTERN):
            yield

    generator = inner()
    next(generator)
    with safe_to_repeat("POST https://b.example/search"):
        generator.close()
        assert is_vouched(OTHER)
    assert not is_vouched(OTHER)
