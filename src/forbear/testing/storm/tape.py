"""The tape of one run: every call that a client sends, where the user's code made it, and which fault it gets."""

import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import TypeVar

from forbear.http.request import Request
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110
from forbear.testing.storm.faults import FAULTS, PlannedFault
from forbear.testing.storm.shifted_time import ShiftedTime

_Error = TypeVar("_Error", bound=BaseException)
_HERE = str(Path(__file__).parents[2])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None})
_VARYING = re.compile(r"[0-9]+|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_KEYS = ("idempotency-key", "x-idempotency-key", "x-goog-gcs-idempotency-token")


class StormEnded(BaseException):
    """Raised into the code under test when a run goes on for too long."""


@dataclass(slots=True)
class SentCall:
    """One call as it was sent. `number` counts the calls with the same `label`, from 1.

    `site` is file:line of the user's code, "?" if none is on the stack. `at` is the time in virtual seconds since the
    run began. `unsafe` is true if our tables say that the call must not be executed twice. `key` is its idempotency
    key. `fault` is what was injected. `timeout` is the client's own limit in seconds. `has_body`
    says whether the response had a body.
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

    def applicable(self) -> tuple[str, ...]:
        """Return the faults that make a difference: "slow" only with a timeout, "cut" only with a body."""
        return tuple(
            fault
            for fault in self.faults
            if (fault != "slow" or self.timeout is not None) and (fault != "cut" or self.has_body)
        )


@dataclass(slots=True)
class Tape:
    """The record of one run under at most one `fault`; `limit` and `seconds` are where the run is ended.

    `limit` is a number of calls, `seconds` are virtual. `injected` holds the errors that the storm raised. `ended` says
    why the run was ended, None if it was not.
    """

    time: ShiftedTime
    fault: PlannedFault | None = None
    limit: int = 1000
    seconds: float = 600
    calls: list[SentCall] = field(default_factory=list)
    injected: list[BaseException] = field(default_factory=list)
    servers: dict[object, Mapping[str, int]] = field(default_factory=dict)
    ended: str | None = None
    numbers: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def begin(
        self,
        label: str,
        *,
        unsafe: bool,
        key: str | None = None,
        timeout: float | None = None,
        faults: tuple[str, ...] = FAULTS,
    ) -> SentCall:
        """Record a call that is about to be sent, and return it with its fault; StormEnded if the run is too long."""
        self.time.join()
        self.check()
        site = site_of_user()
        with self.lock:
            self.numbers[label] += 1
            call = SentCall(label, self.numbers[label], site, self.time.elapsed, unsafe, key, None, faults, timeout)
            if self.fault is not None and self.fault.hits(label, call.number) and self.fault.name in faults:
                call.fault = self.fault.name
            self.calls.append(call)
        call.frames = frames_of_user()
        return call

    def check(self) -> None:
        """Raise StormEnded if a run with a fault made too many calls or took too long; a clean run may go on."""
        if self.fault is not None and len(self.calls) >= self.limit:
            self.ended = self.ended or f"{self.limit} calls"
        elif self.fault is not None and self.time.elapsed > self.seconds:
            self.ended = self.ended or f"{self.time.elapsed / 60:.0f} virtual minutes"
        if self.ended is not None:
            raise StormEnded(f"the storm ended this run after {self.ended}")

    def withdraw(self, call: SentCall) -> None:
        """Forget a call that was not sent after all."""
        with self.lock:
            self.calls.remove(call)
            self.numbers[call.label] -= 1

    def inject(self, error: _Error) -> _Error:
        """Remember an error as the storm's own, and return it."""
        self.injected.append(error)
        return error


_current: list[Tape] = []


def active() -> Tape | None:
    """Return the tape of the current run, None outside of one."""
    return _current[-1] if _current else None


@contextmanager
def recording(tape: Tape) -> Generator[Tape]:
    """Let all clients of this process record on `tape` within the block."""
    _current.append(tape)
    try:
        yield tape
    finally:
        _current.remove(tape)


def http_call(
    tape: Tape, method: str, host: str, target: str, headers: Mapping[str, str], timeout: float | None
) -> SentCall:
    """Record an HTTP request on `tape`, and return the call."""
    path = target.partition("?")[0] or "/"
    service = registry.find(host, path) or RFC9110
    judgement = service.classify(Request(method, host, target, headers, None))
    key = next((headers[name] for name in _KEYS if name in headers), None)
    return tape.begin(f"{method} {_steady(path)}", unsafe=not judgement.repeatable, key=key, timeout=timeout)


def frames_of_user() -> tuple[tuple[str, int], ...]:
    """Return the file and line of the frames of the user's code, the innermost first.

    These are the frames that are neither of forbear, nor of an installed package, nor of the standard library.
    """
    frames: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_HERE, "<", *_LIBRARIES)):
            frames.append((file, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def _steady(path: str) -> str:
    """Return the path with `*` for each segment that is a number, a UUID or a long hexadecimal number."""
    return "/".join("*" if _VARYING.fullmatch(segment) else segment for segment in path.split("/"))


def site_of_user() -> str:
    """Return file:line of the innermost frame that is neither forbear, an installed package nor the standard library.

    The file is relative to the current directory where possible; "?" without such a frame.
    """
    frame: FrameType | None = sys._getframe(1)
    here = str(Path.cwd()) + "/"
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_HERE, "<")) and (not file.startswith(_LIBRARIES)):
            return f"{file.removeprefix(here)}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"
