"""Replace attributes within a run of a storm, and restore them even where a test has patched them in the meantime."""

from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from inspect import isawaitable
from typing import Any

from forbear_audit.storm.run_record import current_record

Handle = Callable[..., Coroutine[Any, Any, Any]]
"""Stands for a method, sync or async, of a client."""

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


def wrap(original: Callable[..., Any], handle: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method for which `handle(original, self, ...)` stands."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return handle(original, self, *args, **kwargs)

    return call


def lead(undo: ExitStack, owner: Any, name: str, handle: Callable[..., Any]) -> None:
    """Let `handle(record, original, self, ...)` stand for a method, until `undo`, where calls are recorded."""

    def ask(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        record = current_record()
        if record is None:
            return original(self, *args, **kwargs)
        return handle(record, original, self, *args, **kwargs)

    replace(undo, owner, name, wrap(getattr(owner, name), ask))


def run_now(handle: Handle) -> Callable[..., Any]:
    """Return the sync form of a function that awaits nothing but `finish`, for the sync client of a library."""

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            handle(*args, **kwargs).send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("a sync client must not wait for a loop")

    return run


async def finish(result: Any) -> Any:
    """Return the result of a sync or an async client."""
    return await result if isawaitable(result) else result
