"""Replace attributes within a run of a storm, and restore them even where a test has patched them in the meantime."""

from contextlib import ExitStack
from typing import Any

_lost: list[tuple[Any, str, object, object]] = []


def replace(undo: ExitStack, owner: Any, name: str, value: object) -> None:
    """Set an attribute, and let `undo` restore it.

    If a test has set it to something else by then, that stays. When the test restores `value` later, `sweep` removes
    it.
    """
    original: object = owner.__dict__[name]
    setattr(owner, name, value)
    undo.callback(_restore, owner, name, value, original)


def _restore(owner: Any, name: str, value: object, original: object) -> None:
    if owner.__dict__.get(name) is value:
        setattr(owner, name, original)
    else:
        _lost.append((owner, name, value, original))


def sweep() -> None:
    """Restore all attributes to which a test has given back a value of an earlier run."""
    for owner, name, value, original in _lost:
        if owner.__dict__.get(name) is value:
            setattr(owner, name, original)
