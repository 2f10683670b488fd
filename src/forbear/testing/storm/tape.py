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
from types import CodeType, FrameType
from typing import TYPE_CHECKING, TypeVar

from forbear.http.request import Request
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110
from forbear.testing.storm.faults import FAULTS, PlannedFault
from forbear.testing.storm.shifted_time import ShiftedTime

_Error = TypeVar("_Error", bound=BaseException)
_HERE = str(Path(__file__).parents[2])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None})
_PACKAGES = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")} - {None})
_CLIENTS = frozenset(
    {
        "", "aiohttp", "anyio", "boto3", "botocore", "grpc", "httpcore", "httpcore2", "httpx", "httpx2", "pluggy",
        "_pytest", "pytest_asyncio", "redis", "requests", "trio", "urllib3", "valkey",
    }
)  # fmt: skip
"""The packages whose frames lie between a test and the call that it makes by itself."""
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
class Tape:
    """The record of one run under at most one `fault`; `limit` and `seconds` are where the run is ended.

    `limit` is a number of calls, `seconds` are virtual. `injected` holds the errors that the storm raised. `ended` says
    why the run was ended, None if it was not. `test` is the code of the test function.
    """

    time: ShiftedTime
    fault: PlannedFault | None = None
    limit: int = 1000
    seconds: float = 600
    test: CodeType | None = None
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
        place: tuple[str, bool] | None = None,
    ) -> SentCall:
        """Record a call that is about to be sent, and return it with its fault; StormEnded if the run is too long.

        `place` is what `place_of_user` returned, for a call that is sent by another thread than the user's.
        """
        if place is None:
            self.time.join()
        self.check()
        site, by_test = place or place_of_user(self.test)
        with self.lock:
            self.numbers[label] += 1
            call = SentCall(label, self.numbers[label], site, self.time.elapsed, unsafe, key, None, faults, timeout)
            call.by_test = by_test
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

    def stuck(self) -> None:
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


def place_of_user(test: CodeType | None = None) -> tuple[str, bool]:
    """Return file:line of the user's code that makes a call, and whether the test makes it by itself.

    It is the innermost frame that is neither forbear, an installed package nor the standard library. The file is
    relative to the current directory where possible; "?" without such a frame. The test makes a call by itself if
    nothing but a client library is between its function, `test`, and the call.
    """
    frame: FrameType | None = sys._getframe(1)
    here = str(Path.cwd()) + "/"
    between = False
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if not file.startswith((_HERE, "<", *_LIBRARIES)):
            return f"{file.removeprefix(here)}:{frame.f_lineno}", not between and is_part_of(code, test)
        between = between or _package(file) not in _CLIENTS
        frame = frame.f_back
    return "?", test is not None and not between


def is_part_of(code: CodeType, test: CodeType | None) -> bool:
    """Return whether code is that of the test, or of a function in it."""
    if test is None or code.co_filename != test.co_filename:
        return False
    return code is test or code.co_qualname.startswith(f"{test.co_qualname}.")


def is_of_client(file: str) -> bool:
    """Return whether a file is one of the standard library or of a client library."""
    return file.startswith(("<", *_LIBRARIES)) and _package(file) in _CLIENTS


def _package(file: str) -> str:
    """Return the name of the installed package that a file belongs to, "" for forbear and the standard library."""
    for folder in _PACKAGES:
        if file.startswith(folder) and not file.startswith(_HERE):
            return file[len(folder) + 1 :].partition("/")[0].removesuffix(".py")
    return ""
