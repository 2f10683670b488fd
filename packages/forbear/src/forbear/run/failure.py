"""`Failure`: one failed attempt, as a loop or an adapter reports it to its `Run`."""

from forbear.core.decide import Reason, Stop
from forbear.core.report import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.attempt import Details
    from forbear.core.verdict import Verdict


FORGOTTEN = "the service may have forgotten the key of the request by the next attempt"


class Failure:
    """A failed attempt: its verdict, its error, and why the operation must not be executed twice.

    `unsafe` is None (default) if it may. `name` and `text` describe the failure in reports. The run sets `elapsed`, the
    seconds since it began.

    >>> from forbear.verdicts import TRANSIENT
    >>> run = Run(forbear.retry(OSError, attempts=2), "load", current_runtime(), current_runtime().monotonic())
    >>> grant = run.after(Failure(TRANSIENT, OSError("lost")))
    >>> grant.ask(), run.attempt
    (True, 2)
    >>> run.after(Failure(TRANSIENT, OSError("lost"))), run.report.reason
    (None, <Reason.ATTEMPTS: 'attempts'>)
    """

    __slots__ = ("elapsed", "error", "text", "unsafe", "verdict")

    is_detailed = False
    """True if any of the fields that follow may have another value than here."""
    blocked: Stop | None = None
    """The reason against a retry that the decision would allow, such as a body that cannot be sent again."""
    response: object = None
    """The response or value that counts as a failure, where there is no error."""
    maybe_done: bool = False
    """True if an earlier success would lead to this outcome."""
    hint: str = ""
    """The words that end what the note says of `maybe_done`."""
    vouched: bool = False
    """True if only the user's word allows a retry."""
    billed: bool = False
    """True if the attempt may have cost money."""
    harmless: bool = False
    """True if the attempt only read, so that it leaves nothing in doubt."""
    until: float | None = None
    """The seconds of the run after which the service may have forgotten the key that makes a repeat safe, or None."""
    details: "Details" = ()
    """The time, status and request ids; without them, the time follows from `elapsed`."""
    label: str | None = None
    """The name of the failure in reports, where it is not that of the error's class."""
    checked: int | None = None
    """The number of reports and entries when the ledger was read for the failure; None if it was not read."""

    error: Exception | None
    elapsed: float

    def __init__(self, verdict: "Verdict", error: Exception, unsafe: str | None = None) -> None:
        self.verdict = verdict
        self.error = error
        self.unsafe = unsafe
        self.text: str = text_of(error)

    @property
    def name(self) -> str:
        """The name of the failure in reports."""
        return self.label or type(self.error).__qualname__

    def find_block(self, delay: float) -> Stop | None:
        """Return the reason against a retry after `delay` seconds that the decision would allow, None without one."""
        if self.blocked is None and self.until is not None and self.elapsed + delay > self.until:
            return Stop(Reason.UNSAFE, FORGOTTEN)
        return self.blocked

    @property
    def outcome(self) -> object:
        """The error, or without one the response or value."""
        return self.response if self.error is None else self.error


class DetailedFailure(Failure):
    """A failed attempt of which more is known, or which ended without an error; then `name` and `text` must be passed.

    It is slower to make. Functions, which fail more often than requests, do not need it. Example: see `Failure`.
    """

    __slots__ = (
        "billed", "blocked", "checked", "details", "harmless", "hint", "label", "maybe_done", "response", "until",
        "vouched",
    )  # fmt: skip

    is_detailed = True

    def __init__(
        self,
        verdict: "Verdict",
        error: Exception | None = None,
        unsafe: str | None = None,
        *,
        name: str | None = None,
        text: str | None = None,
        response: object = None,
        blocked: Stop | None = None,
        maybe_done: bool = False,
        vouched: bool = False,
        harmless: bool = False,
        details: "Details" = (),
        checked: int | None = None,
    ) -> None:
        self.verdict = verdict
        self.error = error
        self.unsafe = unsafe
        self.label = name
        self.text = text_of(error) if text is None and error is not None else text or ""
        self.response = response
        self.blocked = blocked
        self.maybe_done = maybe_done
        self.vouched = vouched
        self.harmless = harmless
        self.details = details
        self.checked = checked
        self.hint = ""
        self.billed = False
        self.until: float | None = None
