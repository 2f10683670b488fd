"""Wildcards: what they match, and what they do not."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.transfer.plans.wildcards import compiled, is_wild, literal_start


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*", "a", True),
        ("*", "a/b", False),
        ("*.txt", "a\nb.txt", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a?c", "ac", False),
        ("**", "a/b/c", True),
        ("**.txt", "a/b.txt", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/xb", False),
        ("[ab]", "b", True),
        ("[ab]", "c", False),
        ("[!ab]", "c", True),
        ("[!ab]", "a", False),
        ("[!ab]", "/", False),
        ("[a-c]x", "bx", True),
        ("[c-a]", "b", False),
        ("[!c-a]", "b", True),
        ("[!c-a]", "/", False),
        ("[a-]", "-", True),
        ("[]]", "]", True),
        ("[^a]", "^", True),
        ("[^a]", "b", False),
        ("[\\d]", "7", False),
        ("[\\d]", "\\", True),
        ("[+--]", ",", True),
        ("a[", "a[", True),
        ("a.b", "axb", False),
        ("(a|b)+$", "(a|b)+$", True),
    ],
)
def test_a_pattern_matches_what_it_says(pattern: str, name: str, matches: bool) -> None:
    """Wildcards stay within a part of a name, but for two stars; all else stands for itself."""
    assert (compiled(pattern).fullmatch(name) is not None) is matches


@given(st.text("ab*?[]!-^.", max_size=8), st.text("ab*?[]!-^.", max_size=6))
def test_without_slashes_it_is_what_the_shell_does(pattern: str, name: str) -> None:
    """In names of one part, the patterns are those of fnmatch, but for ranges that run backwards."""
    if "**/" not in pattern and "-" not in pattern:
        assert (compiled(pattern).fullmatch(name) is not None) is fnmatch.fnmatchcase(name, pattern)


@given(st.text("ab/*?[]-", max_size=8))
def test_what_matches_begins_with_the_literal_start(pattern: str) -> None:
    """A listing by the literal start misses nothing: without wildcards it is the whole pattern."""
    assert pattern.startswith(literal_start(pattern))
    assert is_wild(pattern) is (literal_start(pattern) != pattern)
