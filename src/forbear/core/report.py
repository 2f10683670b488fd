"""The report of a run: plain text and numbers, so that it keeps no frame or body alive and pickles with its error."""

from itertools import count

from forbear.core.decide import Reason, show
from forbear.core.record import Record
from forbear.core.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ATTRIBUTE = "__forbear_report__"
EXTENSION = "forbear_report"
"""Where the report of a response lies in its `extensions`."""

_PREFIX = "forbear: "
_LONGEST_TEXT = 500
_MOST_CARRIERS = 100

_numbers = count(1)  # without a lock, which a forked child might find taken
reports_made = [0]
"""The number of the newest report of this process: where it has not changed, no inner run has given up meanwhile."""


class Attempt(Record):
    """One failed attempt: its `number` from 1, the `error` type and `text`, the seconds `elapsed` in the run by then.

    `delay` is the wait that followed it in seconds, None after the last attempt. The text leaves a run here, for
    reports, events and all that listens to them, so here secrets are taken out of it.
    """

    __slots__ = ("number", "error", "text", "elapsed", "delay")

    number: int
    error: str
    text: str
    elapsed: float
    delay: float | None

    def __init__(self, number: int, error: str, text: str, elapsed: float, delay: float | None = None) -> None:
        store = object.__setattr__
        store(self, "number", number)
        store(self, "error", error)
        store(self, "text", redact(text)[:_LONGEST_TEXT])
        store(self, "elapsed", elapsed)
        store(self, "delay", delay)


class Report(Record):
    """What was tried before a run gave up.

    `reason` is the rule that ended it and `text` that rule in words. `maybe_done` is set where the last response may
    mean that an earlier attempt had worked after all. A run of very many attempts keeps its first and last failures:
    `omitted` says how many between them are not in `attempts`, and `count` is the number of all attempts. `number`
    counts the reports of this process, and `origin` says in which run of this process it was made; both are left out of
    comparisons and pickles.
    """

    __slots__ = ("operation", "attempts", "elapsed", "reason", "text", "maybe_done", "omitted", "number", "origin")

    operation: str
    attempts: tuple[Attempt, ...]
    elapsed: float
    reason: Reason
    text: str
    maybe_done: bool
    omitted: int
    number: int
    origin: object

    def __init__(
        self,
        operation: str,
        attempts: tuple[Attempt, ...],
        elapsed: float,
        reason: Reason,
        text: str,
        maybe_done: bool = False,
        omitted: int = 0,
        origin: object = None,
    ) -> None:
        number = reports_made[0] = next(_numbers)
        self._set(
            operation=operation,
            attempts=attempts,
            elapsed=elapsed,
            reason=reason,
            text=text,
            maybe_done=maybe_done,
            omitted=omitted,
            number=number,
            origin=origin,
        )

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-2]  # not `number` and `origin`, which say nothing of the run

    @property
    def count(self) -> int:
        """The number of attempts, those included that `attempts` omits."""
        return len(self.attempts) + self.omitted

    @property
    def note(self) -> str:
        """The line an exception carries: "forbear: gave up after 5 attempts in 31.2 s: timeout of 30 s reached"."""
        count = f"{self.count} attempt{'s' if self.count != 1 else ''}"
        omitted = f" ({self.omitted} of them omitted from the report)" if self.omitted else ""
        doubt = "; an earlier attempt may have worked" if self.maybe_done else ""
        return f"{_PREFIX}gave up after {count}{omitted} in {show(self.elapsed)}: {self.text}{doubt}"


_attributes_of = BaseException.__dict__["__dict__"].__get__
"""Returns the attributes of an exception: a class may forbid to set them or fail to look them up, but has them."""

traceback_of = BaseException.__dict__["__traceback__"].__get__
cause_of = BaseException.__dict__["__cause__"].__get__
context_of = BaseException.__dict__["__context__"].__get__
"""Return the same of an exception as the attribute of that name, whatever its class does about attributes."""


def attach(error: BaseException, report: Report) -> None:
    """Annotate an exception that is about to be raised again; a report and a note of an earlier run give way.

    Every exception takes a report, whatever its class forbids; a class that keeps notes in a way of its own may hide
    the note.
    """
    attributes: dict[str, object] = _attributes_of(error)
    attributes[_ATTRIBUTE] = report
    attributes["__notes__"] = [*_others(_look_up(error, "__notes__")), report.note]


def _others(notes: "Any") -> "list[object]":
    """Return the notes of others; they may be anything, and what cannot be read gives way."""
    if not isinstance(notes, list | tuple):
        return []
    try:
        listed: list[Any] = [*notes]
        return [note for note in listed if not (isinstance(note, str) and note.startswith(_PREFIX))]
    except Exception:
        return []


def _look_up(thing: object, name: str) -> "Any":
    """Return an attribute, None where there is none: a property that raises must not hide the failure at hand."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def text_of(error: BaseException) -> str:
    """What an exception says; a class whose `__str__` fails must not hide the failure that it stands for."""
    try:
        text = str(error)
        return text if text.isascii() else writable(text)
    except Exception as failure:
        return f"(no text: its __str__ raised {type(failure).__qualname__})"


def writable(text: str) -> str:
    """`text` as it can be written anywhere: lone surrogates, which no encoding knows, are spelt out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def report(outcome: object) -> Report | None:
    """Return the report that an exception or a response carries, None if it was not retried.

    An exception without one of its own may hold a `response` that has one, as the error of `raise_for_status()` does,
    the exception that it was made of, as those of requests do, or raised `from`, or a group of them. So may a response
    of requests, by what it has `raw`.
    """
    return next((found for _, found in carried(outcome)), None)


def carried(outcome: object) -> "Iterator[tuple[object, Report]]":
    """Yield the reports of an outcome and of what it was made of, each with the exception or response that has it."""
    waiting = [outcome]
    for _ in range(_MOST_CARRIERS):  # groups and causes may be many, and even go in circles
        if not waiting:
            return
        carrier = waiting.pop(0)
        found = _carried_by(carrier)
        if found is not None:
            yield carrier, found
            continue
        response = _look_up(carrier, "response") if carrier is outcome or isinstance(carrier, BaseException) else None
        if response is not None:
            waiting.append(response)
        if isinstance(carrier, BaseException):
            waiting += _parts(carrier)


def _parts(error: BaseException) -> "list[BaseException]":
    """Return the exceptions that an exception was made of: a library's own, its cause, the members of a group."""
    parts: list[Any] = [*_tuple(error, "args")[:1], cause_of(error)]
    if isinstance(error, BaseExceptionGroup):
        parts += _tuple(error, "exceptions")[:_MOST_CARRIERS]  # pyright: ignore[reportUnknownArgumentType]
    return [part for part in parts if isinstance(part, BaseException)]


def _tuple(error: BaseException, name: str) -> "tuple[Any, ...]":
    value: tuple[Any, ...] | None = _look_up(error, name)
    return value if isinstance(value, tuple) else ()


def _carried_by(carrier: object) -> Report | None:
    """Return the report that this very exception or response has, if any."""
    if isinstance(carrier, BaseException):
        found = _attributes_of(carrier).get(_ATTRIBUTE)
    else:
        found = _look_up(carrier, _ATTRIBUTE)
        extensions: dict[str, object] | None = _look_up(carrier, "extensions")
        if found is None and isinstance(extensions, dict):
            found = extensions.get(EXTENSION)
        if found is None:
            found = _look_up(_look_up(carrier, "raw"), _ATTRIBUTE)
    return found if isinstance(found, Report) else None
