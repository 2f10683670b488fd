"""The patterns of the audit: each recognises its example, and not its near miss."""

import re

import pytest

from forbear_audit.reading import name_patterns, text_patterns
from forbear_audit.reading.patterns import EXAMPLES

NAMES = {id(value): name for module in (name_patterns, text_patterns) for name, value in vars(module).items()}


@pytest.mark.parametrize(
    ("pattern", "example", "near_miss"), EXAMPLES, ids=[NAMES[id(pattern)] for pattern, *_ in EXAMPLES]
)
def test_a_pattern_has_an_example_and_a_near_miss(pattern: re.Pattern[str], example: str, near_miss: str) -> None:
    """A pattern is found in its example, and nowhere in a text that only looks like it."""
    assert pattern.search(example)
    assert not pattern.search(near_miss)


def test_no_pattern_stands_twice() -> None:
    """Two names for one pattern would be two places to correct."""
    assert len({(pattern.pattern, pattern.flags) for pattern, *_ in EXAMPLES}) == len(EXAMPLES)
