"""The record of one run: every call that a client sends, where the user's code made it, and which fault it gets."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock, get_ident
from types import CodeType
from typing import TYPE_CHECKING, TypeVar

from forbear import services
from forbear.adapters import Request
from forbear.services.rfc9110 import Rfc9110
from forbear_audit.storm.ending import SwallowedEnds
from forbear_audit.storm.faults import FAULTS, PlannedFault
from forbear_audit.storm.shifted_time import ShiftedTime
from forbear_audit.storm.stack import UserStack, user_stack

_Error = TypeVar("_Error", bound=BaseException)
_VARYING = re.compile(r"[0-9]+|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_KEYS = ("idempotency-key", "x-idempotency-key", "x-goog-gcs-idempotency-token")


STUCK = "a wait that nothing ends"
"""Why a run was ended that hangs."""


if TYPE_CHECKING:
    _Base = BaseException
else:  # anyio ends its runner, and with it all fixtures, for any other BaseException
    _Base = getattr(sys.modules.get("_pytest.outcomes"), "OutcomeException", BaseException)


class StormEnded(_Base):
    """Raised into the code under test when a run goes on for too long."""


@dataclass(slots=True)
class SentCall:
    """One call as it was sent. `number` counts the calls with the same `label`, from 1.

    `site` is file:line of the user's code, "?" if none is on the stack. `at` is the time in virtual seconds since the
    run began. `unsafe` is true if our tables say that the call must not be executed twice. `key` is its idempotency
    key. `fault` is what was injected, `timeout` the client's own limit in seconds. `responded` says whether there was
    a response, `has_body` whether it had a body. `by_test` is true if the test makes the call by itself, with no code
    under test between.
    """

    label: str
    number: int
    site: str
    at: float
    unsafe: bool
    key: str | None = None
    fault: str | None = None
    faults: tuple[str, ...] = FAULTS
    timeout: float | None = None
    frames: tuple[tuple[str, int], ...] = ()
    """The file and line of all frames of the user's code, the innermost first."""
    has_body: bool = False
    by_test: bool = False
    responded: bool = False
    counted: bool = False
    """True if a count rose while it was sent, in a clean run."""

    def applicable(self) -> tuple[str, ...]:
        """Return the faults that make a difference.

        "slow" does only with a timeout, "cut" only with a body. None does for a call that has no response anyway.
        """
        return tuple(
            fault
            for fault in self.faults
            if self.responded and (fault != "slow" or self.timeout is not None) and (fault != "cut" or self.has_body)
        )


@dataclass(slots=True)
class RunRecord:
    """The record of one run under at most one `fault`; `limit` and `seconds` are where the run is ended.

    `limit` is a number of calls, `seconds` are virtual. `injected` holds the errors that the storm raised. `ended` says
    why the run was ended, None if it was not, and `ends` whether the code goes on nevertheless. `test` is the code of
    the test function, `error` its error, and `outcome` is "passed", "failed" or "skipped". When the run is over,
    `elapsed` has its virtual seconds, and `effects` how often each effect occurred, by its source.
    """

    fault: PlannedFault | None
    calls: list[SentCall] = field(default_factory=list)
    time: ShiftedTime = field(default_factory=ShiftedTime)
    limit: int = 1000
    seconds: float = 600
    test: CodeType | None = None
    outcome: str = "passed"
    error: BaseException | None = None
    injected: list[BaseException] = field(default_factory=list)
    servers: dict[object, Mapping[str, int]] = field(default_factory=dict)
    effects: dict[str, Counter[str]] = field(default_factory=dict)
    elapsed: float = 0
    ended: str | None = None
    numbers: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)
    on_begin: Callable[[SentCall | None], None] = lambda call: None
    ends: SwallowedEnds = field(init=False)

    def __post_init__(self) -> None:
        self.ends = SwallowedEnds(self._end)

    def signature(self) -> tuple[str, Counter[tuple[str, str]]]:
        """Return what must be the same in two clean runs: the outcome, and the calls from each place."""
        return self.outcome, self.sent()

    def sent(self) -> Counter[tuple[str, str]]:
        """Return how often each call was sent from each place of the user's code."""
        return Counter((call.label, call.site) for call in self.calls)

    def begin(
        self,
        label: str,
        *,
        unsafe: bool,
        key: str | None = None,
        timeout: float | None = None,
        faults: tuple[str, ...] = FAULTS,
        stack: UserStack | None = None,
    ) -> SentCall:
        """Record a call that is about to be sent, and return it with its fault; StormEnded if the run is too long.

        `stack` is that of the user's thread, for a call that another thread sends.
        """
        if stack is None:
            self.time.join()
        self.check()
        stack = stack or user_stack(self.test)
        with self.lock:
            self.numbers[label] += 1
            number, at = self.numbers[label], self.time.elapsed
            call = SentCall(label, number, stack.site, at, unsafe, key, None, faults, timeout, stack.frames)
            call.by_test = stack.by_test
            if self.fault is not None and self.fault.applies_to(label, call.number) and self.fault.name in faults:
                call.fault = self.fault.name
            self.calls.append(call)
        self.on_begin(call)
        return call

    def check(self) -> None:
        """Raise StormEnded if a run with a fault made too many calls or took too long; a clean run may go on."""
        if self.fault is not None and len(self.calls) >= self.limit:
            self.ended = self.ended or f"{self.limit} calls"
        elif self.fault is not None and self.time.elapsed > self.seconds:
            self.ended = self.ended or f"{self.time.elapsed / 60:.0f} virtual minutes"
        if self.ended is not None:
            self.ends.note()
            raise self._end()

    def _end(self) -> StormEnded:
        return StormEnded(f"the storm ended this run after {self.ended}")

    def end_stuck(self) -> None:
        """End a run that waits for something that does not come: raise StormEnded."""
        self.ended = self.ended or STUCK
        self.check()

    def withdraw(self, call: SentCall) -> None:
        """Forget a call that was not sent after all."""
        with self.lock:
            self.calls.remove(call)
            self.numbers[call.label] -= 1

    def inject(self, error: _Error) -> _Error:
        """Remember an error as the storm's own, and return it."""
        self.injected.append(error)
        return error

    def lose(self, call: SentCall, lost: BaseException, late: BaseException) -> BaseException:
        """Return the error of a response that is lost, or of one that comes too late, as the fault of the call says."""
        if call.fault == "slow":
            self.time.advance(call.timeout or 0)
        return self.inject(late if call.fault == "slow" else lost)


_current: list[RunRecord] = []
_unrecorded: list[int] = []


is_safe_operation: ContextVar[bool | None] = ContextVar("is_safe_operation", default=None)
"""True if the operation that a client is sending may be executed twice, where the client knows that better."""


def current_record() -> RunRecord | None:
    """Return the record of the current run, None outside of one and in a thread that is not recorded now."""
    return _current[-1] if _current and get_ident() not in _unrecorded else None


@contextmanager
def stop_recording() -> Generator[None]:
    """Record no calls of this thread within the block."""
    _unrecorded.append(get_ident())
    try:
        yield
    finally:
        _unrecorded.remove(get_ident())


@contextmanager
def record_calls(record: RunRecord) -> Generator[RunRecord]:
    """Let all clients of this process record on `record` within the block."""
    _current.append(record)
    try:
        yield record
    finally:
        _current.remove(record)


def record_http_call(
    record: RunRecord, method: str, host: str, target: str, headers: Mapping[str, str], timeout: float | None
) -> SentCall:
    """Record an HTTP request on `record`, and return the call."""
    path = target.partition("?")[0] or "/"
    service = services.find(host, path) or Rfc9110()
    is_safe = is_safe_operation.get()
    if is_safe is None:
        is_safe = service.classify(Request(method, host, target, headers, None)).repeatable
    key = next((headers[name] for name in _KEYS if name in headers), None)
    return record.begin(f"{method} {replace_ids(path)}", unsafe=not is_safe, key=key, timeout=timeout)


def replace_ids(name: str, separators: str = "/") -> str:
    """Return a path or a key with `*` for each part that is a number, a UUID or a long hexadecimal number."""
    parts = re.split(f"([{re.escape(separators)}])", name)
    return "".join("*" if _VARYING.fullmatch(part) else part for part in parts)
