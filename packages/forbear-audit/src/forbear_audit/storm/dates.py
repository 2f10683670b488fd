"""Shift `datetime.now()` within a run, for modules of the user and for backoff, whose `max_time` reads it.

These modules see a class, or a module, that stands for the real one; the dates that it makes are real ones.
"""

import datetime as dt
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from forbear_audit.storm.patching import replace
from forbear_audit.storm.stack import modules_of_user

_Real = dt.datetime
_shift: list[Callable[[], float]] = []


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Real)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _Real

    def __hash__(cls) -> int:
        return hash(_Real)


def _call_real(name: str, *arguments: Any) -> Any:
    """Return what the real class returns, or what one that freezegun has put in its place does."""
    kind: Any = vars(dt)["datetime"]
    if kind is not _Real:
        return getattr(kind, name)(*arguments)
    return getattr(_Real, name)(*arguments) + dt.timedelta(seconds=_shift[-1]() if _shift else 0)


class ShiftedDatetime(_Real, metaclass=_Kind):
    """Stands for the class `datetime`: its `now`, `utcnow` and `today` return shifted dates of the real class."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Return a date of the real class."""
        return _Real(*arguments, **keywords)

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        """Return the shifted date and time in a zone."""
        return _call_real("now", tz)

    @classmethod
    def utcnow(cls) -> Any:
        """Return the shifted date and time in UTC, without a zone."""
        return _call_real("utcnow")

    @classmethod
    def today(cls) -> Any:
        """Return the shifted date and time, without a zone."""
        return _call_real("today")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Callable[[object], Any]) -> Any:
        return handler(_Real)


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "datetime" and vars(dt)["datetime"] is _Real:
            return ShiftedDatetime
        return getattr(dt, name)


_fake_module = _Module("datetime")


def shift_dates(undo: ExitStack, shift: Callable[[], float]) -> None:
    """Let the modules that are loaded see dates that are shifted by so many seconds, until `undo`."""
    _shift.append(shift)
    undo.callback(_shift.remove, shift)
    fakes: dict[int, object] = {id(_Real): ShiftedDatetime, id(dt): _fake_module}
    backoff = [module for name, module in list(sys.modules.items()) if name.startswith("backoff.")]
    for module in [*modules_of_user(), *backoff]:
        for attribute, value in list(vars(module).items()):
            if id(value) in fakes:
                replace(undo, module, attribute, fakes[id(value)])
