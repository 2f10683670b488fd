"""Every regular expression of forbear: twice the text is never much more than four times the work."""

import re
import sys

import pytest

from forbear_testkit.hostile.steps import spans

PIECES = [
    "a", "-", ".", "/", "1", " ", "a.", "a-", "a1", "1-", ": ", ": 500 A", "Error ", "[", "]", "[!", "*", '"', "'",
    "\\",
    "%", "\n",
]  # fmt: skip


def _patterns() -> dict[str, "re.Pattern[str]"]:
    """Return the patterns that modules keep, by module and name; conftest has imported all modules."""
    return {
        f"{module}.{name}": value
        for module, namespace in sorted(sys.modules.items())
        if module.startswith("forbear.")
        for name, value in vars(namespace).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


PATTERNS = _patterns()


def test_there_are_patterns() -> None:
    """A test of nothing would pass."""
    assert len(PATTERNS) > 10


def _grows(pattern: "re.Pattern[str]", size: int) -> None:
    for piece in PIECES:
        once, twice = (max(spans(pattern, piece * length)[1], 1) for length in (size, 2 * size))
        assert twice <= 4.5 * once, piece


@pytest.mark.parametrize("name", sorted(PATTERNS)[::6])
def test_no_pattern_explodes(name: str) -> None:
    """At most the square, whatever the text: a sample of them."""
    _grows(PATTERNS[name], 12)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_none_of_them_does(name: str) -> None:
    """All of them, on longer texts."""
    _grows(PATTERNS[name], 60)
