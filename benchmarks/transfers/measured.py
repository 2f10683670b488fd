"""Time and memory of a transfer: of a call within this process, or of a command, whose start is subtracted."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
from typing import NamedTuple

from benchmarks.transfers.task import Outcome

_STATUS = Path("/proc/self/status")
_KIB = 1024


def call(transfer: Callable[[], Sequence[object]]) -> Outcome:
    """Time a call, which returns what failed: an entry per file, or raises when the client gives up as a whole.

    All that it needs is to be imported before; making its client counts.
    """
    idle = _restart_peak()
    failed: int | None = None
    errors: Sequence[object]
    started, computed = perf_counter(), _computed()
    try:
        errors = transfer()
        failed = len(errors)
    except Exception as error:
        errors = [error]
    seconds, cpu = perf_counter() - started, _computed() - computed
    peak = max(_peak(), getrusage(RUSAGE_CHILDREN).ru_maxrss * _KIB)
    return Outcome(seconds, cpu, max(0, peak - idle), failed, _said(errors[0]) if errors else "")


def command(line: Sequence[str], no_op: Sequence[str]) -> Outcome:
    """Run a command; one of the same program that does nothing tells what its start costs, in time and in memory."""
    idle = min((_run(no_op) for _ in range(3)), key=lambda run: run.seconds)
    done = _run(line)
    return Outcome(
        max(0.0, done.seconds - idle.seconds),
        max(0.0, done.cpu - idle.cpu),
        max(0, done.peak - idle.peak),
        None if done.status else 0,
        done.said if done.status else "",
    )


class _Command(NamedTuple):
    """What a command took, the peak of its largest process, and the last line that it wrote to stderr."""

    seconds: float
    cpu: float
    peak: int
    status: int
    said: str


def _run(line: Sequence[str]) -> _Command:
    started = perf_counter()
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace").split("\n")
        # wait4 and not wait: it tells of this one command, with the processes that it waited for.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = [text.strip() for text in said if text.strip()]
    cpu = usage.ru_utime + usage.ru_stime
    last = lines[-1][-200:] if lines else ""
    return _Command(perf_counter() - started, cpu, usage.ru_maxrss * _KIB, process.returncode, last)


def _computed() -> float:
    """CPU seconds of this process and of those that it waited for."""
    usages = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _said(error: object) -> str:
    return f"{type(error).__name__}: {error}"[:200] if isinstance(error, BaseException) else str(error)[:200]


def _restart_peak() -> int:
    """Forget the peak of the imports, where Linux lets us; returns the memory that the idle process holds."""
    if not _STATUS.exists():
        return getrusage(RUSAGE_SELF).ru_maxrss * _KIB
    Path("/proc/self/clear_refs").write_text("5")
    return _field("VmRSS")


def _peak() -> int:
    return _field("VmHWM") if _STATUS.exists() else getrusage(RUSAGE_SELF).ru_maxrss * _KIB


def _field(name: str) -> int:
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * _KIB
