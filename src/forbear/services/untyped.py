"""Looking at values whose types nobody declares, such as parsed JSON; type checkers go on taking them for anything."""

from collections.abc import Mapping
from typing import Any


def is_mapping(value: Any) -> bool:
    """Whether a value of unknown type is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: Any) -> bool:
    """Whether a value of unknown type is a list."""
    return isinstance(value, list)
