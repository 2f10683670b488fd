"""Values that count, by their kind, as text and as a value of a message."""

import pytest

from forbear.tables import conditions

UUID = "c8b4a1de-7d0f-4c6e-9c55-0f2d8f1b3a11"


@pytest.mark.parametrize(
    ("value", "integer", "positive"),
    [
        ("0", True, False), ("1", True, True), ("01", True, True), (0, True, False), (1, True, True),
        (2**63 - 1, True, True), (-1, False, False), ("-1", False, False), ("", False, False), ("1.0", False, False),
        (1.0, False, False), (True, False, False), (False, False, False), (None, False, False), (b"1", False, False),
    ],
    ids=repr,
)  # fmt: skip
def test_numbers(value: object, integer: bool, positive: bool) -> None:
    """0 is a condition and names nothing; a truth value is no number."""
    assert conditions.is_integer(value) is integer
    assert conditions.is_positive(value) is positive


@pytest.mark.parametrize(
    ("value", "given", "uuid"),
    [
        (UUID, True, True), ("x", True, False), (b"x", True, False), ("", False, False), (b"", False, False),
        (None, False, False), (5, False, False), (["x"], False, False),
    ],
    ids=repr,
)  # fmt: skip
def test_texts(value: object, given: bool, uuid: bool) -> None:
    """A text that is empty is not there."""
    assert conditions.is_not_empty(value) is given
    assert conditions.is_uuid(value) is uuid


def test_no_rule_is_for_what_can_hold_twice() -> None:
    """Conditions that can hold again after the first success have no rule, but for the one that is disputed."""
    for name in conditions.RULES:
        assert "not" not in name.lower()
        assert "source" not in name.lower() or name == "if_source_generation_match"
