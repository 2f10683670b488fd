"""Wildcards: what they match, and what they do not."""

import fnmatch
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_testkit.hostile.steps import spans
from forbear_transfer.plans.wildcards import compile_pattern, is_wild, literal_start


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
        ("a**/b", "a/x/b", True),
        ("a**/b", "axx/b", True),
        ("a**/b", "ab", False),
        ("**/a*b*c", "x/ab/y/abxc", True),
        ("**a*b**c*d", "x/a/axbyc/zcd", True),
        ("a*/b", "axx/b", True),
        ("a*[!x]/*b", "axy/zbb", True),
        ("a[", "a[b]", False),
        ("[!]", "[!]", True),
    ],
)
def test_a_pattern_matches_what_it_says(pattern: str, name: str, matches: bool) -> None:
    """Wildcards stay within a part of a name, but for two stars; all else stands for itself."""
    assert (compile_pattern(pattern).fullmatch(name) is not None) is matches


@given(st.text("ab*?[]!-^.", max_size=8), st.text("ab*?[]!-^.", max_size=6))
def test_without_slashes_it_is_what_the_shell_does(pattern: str, name: str) -> None:
    """In names of one part, the patterns are those of fnmatch, but for ranges that run backwards."""
    if "**/" not in pattern and "-" not in pattern:
        assert (compile_pattern(pattern).fullmatch(name) is not None) is fnmatch.fnmatchcase(name, pattern)


def _naive(pattern: str) -> re.Pattern[str]:
    """Return the pattern as an expression that tries every way there is."""
    written = re.sub(r"(?:(?<=/)|^)\*\*/", "\0", pattern)  # one that may stand for no folder
    parts = {"\0": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    found = re.findall(r"\*\*|.", written, re.DOTALL)
    return re.compile("".join(parts.get(part) or re.escape(part) for part in found), re.DOTALL)


NAMES = ["".join(letters) for size in range(6) for letters in product("ab/", repeat=size)]


@pytest.mark.parametrize("first", ["a", "*", "**", "**/", "?", "/"])
def test_no_match_is_lost(first: str) -> None:
    """A piece that is taken where it first fits matches what it would match if every way were tried."""
    for rest in product(["a", "b", "/", "*b", "**a", "**/", "*"], repeat=3):
        pattern = "".join((first, *rest))
        if "***" not in pattern:
            ours, naive = compile_pattern(pattern), _naive(pattern)
            assert [name for name in NAMES if ours.fullmatch(name)] == [name for name in NAMES if naive.fullmatch(name)]


HOSTILE = [
    "*-*-*-*.log",
    "*_*_*_*_*_*_*.gz",
    "**a**a**a**a**.txt",
    "**/*a*a*/**/*a*b",
    "**/a/**/a/**/a/b",
    "*?*?*?*?b",
    "[a-]*[a-]*[a-]*b",
]


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("name", ["-", "_", "a", "a/", "/", "aa/", "-a"])
def test_names_from_a_server_cannot_make_it_slow(pattern: str, name: str) -> None:
    """Four dashes against a name of 800 took 40 seconds; twice the name is at most four times the work."""
    once, twice = (spans(compile_pattern(pattern), name * (size // len(name)), whole=True)[1] for size in (60, 120))
    assert twice <= 4.5 * once
    assert twice < 120 * 120 * 4


def test_patterns_of_brackets_are_read_once() -> None:
    """A bracket that nothing closes stands for itself."""
    assert compile_pattern("[" * 2000).fullmatch("[" * 2000)


@given(st.text("ab/*?[]-", max_size=8))
def test_what_matches_begins_with_the_literal_start(pattern: str) -> None:
    """A listing by the literal start misses nothing: without wildcards it is the whole pattern."""
    assert pattern.startswith(literal_start(pattern))
    assert is_wild(pattern) is (literal_start(pattern) != pattern)
