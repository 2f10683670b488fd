"""Checks of values whose types nobody declares, such as parsed JSON; they narrow no type for a checker."""

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_mapping(value: "Any") -> bool:
    """Return whether a value of unknown type is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: "Any") -> bool:
    """Return whether a value of unknown type is a list."""
    return isinstance(value, list)
