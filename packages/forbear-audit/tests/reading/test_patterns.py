"""The patterns of the audit: each recognises its example, and not its near miss."""

import pytest

from forbear_audit.reading import patterns


@pytest.mark.parametrize("name", patterns.read_rows())
def test_a_pattern_has_an_example_and_a_near_miss(name: str) -> None:
    """A pattern is found in its example, and nowhere in a text that only looks like it."""
    row, pattern = patterns.read_rows()[name], getattr(patterns, name)
    assert pattern.search(row["example"])
    assert not pattern.search(row["near_miss"])
    assert row["meaning"].endswith(".")


def test_no_pattern_stands_twice() -> None:
    """Two names for one pattern would be two places to correct."""
    assert len({row["regex"] for row in patterns.read_rows().values()}) == len(patterns.read_rows())


def test_only_rows_are_patterns() -> None:
    """A name without a row is an error when it is imported."""
    with pytest.raises(AttributeError, match=r"patterns\.csv has no row GOOD"):
        _ = patterns.GOOD
