"""The report of a run, attached to its error or response.

It has only text and numbers, so it keeps no frame or body alive and pickles with its error. `as_text` and `as_dict` say
what a support case needs.
"""

from forbear.core.attempt import Attempt
from forbear.core.chain import arguments_of, attributes_of, cause_of, context_of, read, walk
from forbear.core.dataclass import dataclass, field
from forbear.core.decide import Reason
from forbear.core.record import Record, numbers, reports_made
from forbear.text.duration import show
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

ATTRIBUTE = "__forbear_report__"
"""The name of the attribute by which a response or an error carries its report."""

SENT_BY_US = "__forbear__"
"""The attribute of a response by which the judge of functions knows that an adapter of ours has sent the request."""

EXTENSION = "forbear_report"
"""The key of the report in the `extensions` of an httpx response."""

PREFIX = "forbear: "
"""The beginning of every note."""
_LONGEST_RESOURCE = 2048
_MOST_CARRIERS = 1000
_OF_PROCESS = ("number", "origin")
"""The fields of a report that depend on the process: comparisons and pickles leave them out."""


@dataclass(frozen=True, slots=True)
class Report(Record):
    """The attempts of a run that gave up, or was settled by a read, and the reason.

    `operation` is the name of the call, and `elapsed` the run's seconds until its last failure. `reason` is the rule
    that ended the run and `text` that rule in words. `maybe_done` is set if the last response may mean that an earlier
    attempt succeeded. It is also set if the attempt itself may have done its work before it failed, as a script of
    Redis may. `vouched` is set if only the user's word allowed a retry. `billed` is set if an attempt was made after
    one that may have cost money, as calls of language models do. A run of very many attempts keeps its first and
    last failures: `omitted` is the number of those between them, and `count` the number of all attempts. `method` is
    the HTTP method or the full name of the RPC, and `resource` the URL without its query, or the resource that an RPC
    names. Both are None where they are not known, and contain no secrets. `hint` ends what the note says of
    `maybe_done`, "" for nothing. `number` counts the reports of this process, and `origin` identifies the run that made
    this one; comparisons and pickles leave out both.

    >>> try:
    ...     forbear.retry(OSError, attempts=2).call(open, "/no/such/file")
    ... except OSError as error:
    ...     report = forbear.report(error)
    >>> report.reason, [attempt.error for attempt in report.attempts]
    (<Reason.ATTEMPTS: 'attempts'>, ['FileNotFoundError', 'FileNotFoundError'])
    """

    operation: str
    attempts: tuple[Attempt, ...]
    elapsed: float
    reason: Reason
    text: str
    maybe_done: bool = False
    omitted: int = 0
    origin: object = None
    method: str | None = None
    resource: str | None = None
    vouched: bool = False
    hint: str = ""
    billed: bool = False
    number: int = field(init=False)

    def __post_init__(self) -> None:
        reports_made.now = next(numbers)
        self._set(number=reports_made.now)
        if self.method is not None:
            self._set(method=redact(self.method))
        if self.resource is not None:
            self._set(resource=redact(self.resource)[:_LONGEST_RESOURCE])

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return tuple(name for name in cls._names if name not in _OF_PROCESS)

    @property
    def count(self) -> int:
        """The number of all attempts, including the omitted ones."""
        return len(self.attempts) + self.omitted

    @property
    def settled(self) -> bool:
        """True if the run ended well: a read showed that an earlier attempt had worked."""
        return self.reason is Reason.SETTLED

    @property
    def note(self) -> str:
        """The text that is added as a note to the exception: number of attempts, seconds, reason, and code.

        Example: "forbear: gave up after 5 attempts in 31.2 s: timeout of 30 s reached [timeout]". It also names omitted
        attempts, `maybe_done`, `vouched` and `billed`. The code at the end is that of the reason, and stays the same.
        """
        count = f"{self.count} attempt{'s' if self.count != 1 else ''}"
        omitted = f" ({self.omitted} of them omitted from the report)" if self.omitted else ""
        which = "an earlier" if self.count > 1 else "the"
        doubt = f"; {which} attempt may have worked{self.hint}" if self.maybe_done else ""
        word = "; a retry was allowed by the user's word alone" if self.vouched else ""
        bill = "; an earlier attempt may have been billed, too" if self.billed else ""
        text = f"{self.text}{doubt}{word}{bill} [{self.reason.code}]"
        end = "settled" if self.settled else "gave up"
        return f"{PREFIX}{end} after {count}{omitted} in {show(self.elapsed)}: {text}"

    def as_text(self) -> str:
        """Return the report as lines of text for a support case: the request, the outcome, and each attempt.

        An attempt has its time (UTC), its error, its status, the server's request ids and the wait after it. There are
        no secrets in it, and no line end after the last line.
        """
        from forbear.core.attempt import lines_of  # most reports are never shown

        request = " ".join(part for part in (self.method, self.resource) if part is not None)
        lines = [f"Request: {request}"] if request else []
        lines += [f"Operation: {self.operation}", f"Outcome: {self.note.partition(': ')[2]}"]
        return "\n".join([*lines, *lines_of(self.attempts)])

    def _repr_html_(self) -> str:
        """Return the report as a small table, for notebooks."""
        from forbear.core.attempt import table_of

        return table_of(f"{self.operation}: {self.note.partition(': ')[2]}", self.attempts)

    def as_dict(self) -> "dict[str, Any]":
        """Return the facts of `as_text` as a dict that `json.dumps` accepts.

        Times are texts such as "2026-11-22T10:00:00.123Z". Durations are seconds with three decimals, and `request_ids`
        are objects by name.
        """
        from forbear.core.attempt import facts_of

        return {
            "operation": str(self.operation),
            "method": self.method,
            "resource": self.resource,
            "reason": self.reason.code,
            "text": self.text,
            "elapsed": round(self.elapsed, 3),
            "count": self.count,
            "omitted": self.omitted,
            "maybe_done": self.maybe_done,
            "billed": self.billed,
            "attempts": [facts_of(attempt) for attempt in self.attempts],
        }


def carry(error: BaseException, report: Report) -> None:
    """Let an exception carry a report without a note; it replaces that of an earlier run."""
    attributes: dict[str, object] = attributes_of(error)
    attributes[ATTRIBUTE] = report


def attach(error: BaseException, report: Report) -> None:
    """Attach a report and its note to an exception; they replace those of an earlier run.

    This works even if the exception's class forbids new attributes. A class that stores notes differently may hide the
    note.

    >>> from forbear.events import Reason, Report
    >>> error = ConnectionError("lost")
    >>> attach_report(error, Report("load", (), 2.5, Reason.TIMEOUT, "limit of 2 s reached"))
    >>> forbear.report(error).text
    'limit of 2 s reached'
    """
    carry(error, report)
    attributes: dict[str, object] = attributes_of(error)
    attributes["__notes__"] = [*_list_other_notes(read(error, "__notes__")), report.note]


def _list_other_notes(notes: "Any") -> "list[object]":
    """Return the items of `notes` that forbear did not write, [] if it is no list or tuple, or cannot be read."""
    if not isinstance(notes, list | tuple):
        return []
    try:
        listed: list[Any] = [*notes]
        return [note for note in listed if not (isinstance(note, str) and note.startswith(PREFIX))]
    except Exception:
        return []


def text_of(error: BaseException) -> str:
    """Return the text of an error, with lone surrogates as escapes. If its `__str__` raises, the text says that.

    >>> error_text(ConnectionError("lost"))
    'lost'
    """
    try:
        text = str(error)
        return text if text.isascii() else writable(text)
    except Exception as failure:
        return f"(no text: its __str__ raised {type(failure).__qualname__})"


def writable(text: str) -> str:
    """Return `text` with lone surrogates, which no encoding can write, as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def report(outcome: object) -> Report | None:
    """Return the report that an exception or a response carries, None if it carries none, as a success does.

    The report may be on the object itself, or on something that it holds. For an exception that is its `response` (as
    after `raise_for_status()`), the exception that it wraps (as those of requests do), its cause, or a member of its
    group. For a response it is its `response`, its `extensions` (httpx) or its `raw` response (requests). The first
    report counts.

    >>> try:
    ...     forbear.retry(OSError, attempts=2).call(open, "/no/such/file")
    ... except OSError as error:
    ...     forbear.report(error).reason
    <Reason.ATTEMPTS: ...>
    """
    return next((report for _, report in find_carried(outcome)), None)


def find_carried(
    outcome: object, *, behind: bool = False, find: "Callable[[object], Report | None] | None" = None
) -> "Iterator[tuple[object, Report]]":
    """Yield each report of an outcome and of all that it holds, with the exception or response that carries it.

    An outcome holds its response and, if it is an exception, its first argument, its cause and the members of its
    group, and so on. An object that carries a report is not searched further. With `behind`, it is, and an exception
    also holds its context, even if that is suppressed (`from None`). At most 1000 objects are searched. `find` returns
    the report on one object, by default `report_on`.
    """
    find = find or report_on

    def held(carrier: object) -> list[object]:
        if not behind and find(carrier) is not None:
            return []
        parts: list[Any] = []
        if isinstance(carrier, BaseException):
            members: Any = read(carrier, "exceptions")  # of a group
            parts += [*members[:_MOST_CARRIERS]][::-1] if isinstance(members, tuple) else []
            errors = (context_of(carrier) if behind else None, cause_of(carrier), *arguments_of(carrier)[:1])
            parts += [error for error in errors if isinstance(error, BaseException)]
        response = read(carrier, "response") if carrier is outcome or isinstance(carrier, BaseException) else None
        return parts if response is None else [*parts, response]

    for carrier in walk(outcome, held, _MOST_CARRIERS):
        found = find(carrier)
        if found is not None:
            yield carrier, found


def report_on(carrier: object) -> Report | None:
    """Return the report on this very exception or response, None without one.

    A response may also have it in its `extensions`, as an attribute of its `raw` response, or of its
    `ResponseMetadata` (botocore).
    """
    if isinstance(carrier, BaseException):
        report = attributes_of(carrier).get(ATTRIBUTE)
    else:
        report = read(carrier, ATTRIBUTE)
        extensions: dict[str, object] | None = read(carrier, "extensions")
        if report is None and isinstance(extensions, dict):
            report = extensions.get(EXTENSION)
        if report is None:
            report = read(read(carrier, "raw"), ATTRIBUTE)
        if report is None and read(carrier, "__class__") is dict:  # of botocore
            report = read(read(carrier, "get")("ResponseMetadata"), ATTRIBUTE)
    return report if isinstance(report, Report) else None
