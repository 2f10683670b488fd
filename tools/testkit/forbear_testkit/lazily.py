"""Client libraries that are imported when a test first uses them: every test process collects every test."""

from importlib import import_module
from typing import Any


class Library:
    """A library by its dotted name; its attributes are those of the module, which is imported for the first of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks everything in a test module whether it is a fixture
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
