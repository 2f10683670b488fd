"""Checks of parsed JSON."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from forbear.core.check import is_list, is_mapping


@pytest.mark.parametrize(
    ("value", "mapping", "listed"),
    [
        ({}, True, False),
        (MappingProxyType({}), True, False),
        ([], False, True),
        ((), False, False),
        (None, False, False),
    ],
)
def test_mappings_and_lists_are_recognised(
    value: Mapping[str, str] | list[str] | None, mapping: bool, listed: bool
) -> None:
    """Any mapping counts, and of sequences lists alone."""
    assert is_mapping(value) is mapping
    assert is_list(value) is listed
