"""The report of a run: plain text and numbers, so that it keeps no frame or body alive and pickles with its error."""

from forbear.core.decide import Reason, show
from forbear.core.record import Record
from forbear.core.redact import redact

_ATTRIBUTE = "__forbear_report__"
EXTENSION = "forbear_report"
"""Where the report of a response lies in its `extensions`."""

_PREFIX = "forbear: "
_LONGEST_TEXT = 500


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
        self._set(number=number, error=error, text=redact(text)[:_LONGEST_TEXT], elapsed=elapsed, delay=delay)


class Report(Record):
    """What was tried before a run gave up.

    `reason` is the rule that ended it and `text` that rule in words. `maybe_done` is set where the last reply may mean
    that an earlier attempt had worked after all. `made` is its number among the reports of this process, None once it
    came from another.
    """

    __slots__ = ("operation", "attempts", "elapsed", "reason", "text", "maybe_done", "made")

    operation: str
    attempts: tuple[Attempt, ...]
    elapsed: float
    reason: Reason
    text: str
    maybe_done: bool
    made: int | None

    def __init__(
        self,
        operation: str,
        attempts: tuple[Attempt, ...],
        elapsed: float,
        reason: Reason,
        text: str,
        maybe_done: bool = False,
        made: int | None = None,
    ) -> None:
        self._set(
            operation=operation,
            attempts=attempts,
            elapsed=elapsed,
            reason=reason,
            text=text,
            maybe_done=maybe_done,
            made=made,
        )

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-1]  # `made` tells of this process, not of the run

    def made_after(self, number: int) -> bool:
        """Whether it is later than the process's report `number`; an older one rides on an exception raised again."""
        return self.made is None or self.made > number

    def __reduce__(self) -> "tuple[type[Report], tuple[object, ...]]":
        return type(self), (self.operation, self.attempts, self.elapsed, self.reason, self.text, self.maybe_done)

    @property
    def note(self) -> str:
        """The line an exception carries: "forbear: gave up after 5 attempts in 31.2 s: timeout of 30 s reached"."""
        count = f"{len(self.attempts)} attempt{'s' if len(self.attempts) != 1 else ''}"
        doubt = "; an earlier attempt may have worked" if self.maybe_done else ""
        return f"{_PREFIX}gave up after {count} in {show(self.elapsed)}: {self.text}{doubt}"


def attach(error: BaseException, report: Report) -> None:
    """Annotate an exception that is about to be raised again; a report and a note of an earlier run give way."""
    notes: list[object] | None = getattr(error, "__notes__", None)
    others = [note for note in notes if not str(note).startswith(_PREFIX)] if isinstance(notes, list) else []
    set_ = BaseException.__setattr__  # a class may forbid to set attributes, as frozen dataclasses do
    set_(error, "__notes__", [*others, report.note])
    set_(error, _ATTRIBUTE, report)


def text_of(error: BaseException) -> str:
    """What an exception says; a class whose `__str__` fails must not hide the failure that it stands for."""
    try:
        return writable(str(error))
    except Exception as failure:
        return f"(no text: its __str__ raised {type(failure).__qualname__})"


def writable(text: str) -> str:
    """`text` as it can be written anywhere: lone surrogates, which no encoding knows, are spelt out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def report(outcome: object) -> Report | None:
    """The report that an exception or a response carries, None if it was not retried.

    An exception without one of its own may hold a `response` that has one, as the error of `raise_for_status()` does,
    or the exception that it was made of, as those of requests do. So may a response of requests, by what it has `raw`.
    """
    try:
        return _found(outcome)
    except Exception:  # from a property of theirs, which must not hide the failure at hand
        return None


def _found(outcome: object) -> Report | None:
    found: object = getattr(outcome, _ATTRIBUTE, None)
    if found is None:
        response = getattr(outcome, "response", None)
        if response is None:
            if isinstance(outcome, BaseException):  # nearly every error ends here
                inner = outcome.args[0] if outcome.args else None
                return _found(inner) if isinstance(inner, BaseException) else None
            response = outcome
        extensions: dict[str, object] | None = getattr(response, "extensions", None)
        found = extensions.get(EXTENSION) if isinstance(extensions, dict) else getattr(response, _ATTRIBUTE, None)
        if found is None:
            found = getattr(getattr(response, "raw", None), _ATTRIBUTE, None)
    return found if isinstance(found, Report) else None
