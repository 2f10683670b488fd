"""The shared part: eight processes share a retry budget on a real Valkey; half are killed, and Valkey stops and starts.

Every process makes calls, of which one in four or in six fails and asks for a retry. SIGKILL ends half of the
processes, and new ones take their places. Then the server stops without saving anything, and starts again. The results
come from a log to which each process appends what happens, in the order of the events.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.demo import shared_worker
from examples.demo.shared_worker import BACK, CAPACITY, DEPOSIT, GRANTED, LOST, REFUSED, STARTED, SUCCESS
from forbear.core.budget import MICRO, micro
from forbear.testing.valkey import valkey_server

PROCESSES = 8
CALLS = 6_000
"""The least number of calls of the fleet."""
EVERY = (6, 4)
"""Of so many calls of a process one fails, in turn over the processes: more failures than the budget allows retries.

In groups of six, a process earns just what its own token takes: it needs the server little. In groups of four, a part
of each token comes from the shared bucket, and is left unused as long as the server is away.
"""
GOAL = 0.9
"""The least share of the retries of one unshared bucket that the fleet should get."""

WINDOW = 5
"""The longest wait, in seconds, until all processes have the server back: a `window`, in which each looks for it."""

_LONGEST_WAIT = 60.0
_TICK = 0.005


@dataclass(frozen=True, slots=True)
class SharedResult:
    """The result of a fleet of `processes` that share a budget; `killed` of them got a SIGKILL.

    `successes` are the calls that succeeded. The other calls asked for a retry: `granted` were allowed, and `refused`
    not. `unshared` retries would be granted by one bucket that sees all these calls in their order. The server was
    `lost` by so many processes, and `back` for so many of these before the end.
    """

    processes: int
    killed: int
    successes: int
    granted: int
    refused: int
    unshared: int
    lost: int
    back: int

    @property
    def bound(self) -> float:
        """The most retries that the budget may grant: deposit * S + C + P + deposit * S' + F * C / 10.

        The time is that of the whole fleet, so S' is 0: nothing succeeded before. F is 1: the bucket was lost once.
        """
        return DEPOSIT * self.successes + CAPACITY + self.processes + CAPACITY / 10

    @property
    def share(self) -> float:
        """The granted retries as a share of those of one unshared bucket."""
        return self.granted / max(self.unshared, 1)

    @property
    def is_clean(self) -> bool:
        """Return whether no more retries were granted than the bound allows."""
        return self.granted <= self.bound


def share_a_budget(calls: int = CALLS, every: tuple[int, ...] = EVERY) -> SharedResult:
    """Let a fleet make at least `calls` calls, while processes die and the server restarts; return the result.

    One of `every` calls of a process fails, in turn over the processes. The fleet goes on until the server is back for
    one process, and then for at most a `window`, until it is back for all that lost it. Each wait ends after 60 s in
    any case. Raises NoValkey if no server can run here, and RuntimeError if a process of the fleet ends by itself.
    """
    with TemporaryDirectory(prefix="fleet") as folder, ExitStack() as stack:
        fleet = _DemoFleet(stack, Path(folder), every)
        with valkey_server(fleet.socket):
            fleet.start(PROCESSES)
            fleet.wait_for(lambda log: len(log) >= calls // 3)
            fleet.kill(PROCESSES // 2)
            fleet.start(PROCESSES // 2)
            fleet.wait_for(lambda log: len(log) >= calls // 2)
        fleet.wait_for(lambda log: len(log) >= calls * 2 // 3 and LOST in log)
        with valkey_server(fleet.socket):
            fleet.wait_for(lambda log: len(log) >= calls and BACK in log)
            fleet.wait_for(lambda log: log.count(BACK) >= log.count(LOST), WINDOW)
            fleet.kill(PROCESSES)
        return result_of(fleet.log.read_bytes(), PROCESSES // 2)


def result_of(log: bytes, killed: int) -> SharedResult:
    """Return the result that a log of events says; `killed` processes got a SIGKILL before the server stopped."""
    processes, successes, granted, refused, lost, back = map(
        log.count, (STARTED, SUCCESS, GRANTED, REFUSED, LOST, BACK)
    )
    return SharedResult(processes, killed, successes, granted, refused, _unshared(log), lost, back)


def _unshared(log: bytes) -> int:
    """Return how many retries one bucket grants that sees all calls; it starts with a tenth, as the shared one does."""
    capacity, deposit, granted = micro(CAPACITY), micro(DEPOSIT), 0
    tokens = capacity // 10
    for start in range(len(log)):
        event = log[start : start + 1]
        if event == SUCCESS:
            tokens = min(tokens + deposit, capacity)
        elif event in (GRANTED, REFUSED) and tokens >= MICRO:
            tokens -= MICRO
            granted += 1
    return granted


class _DemoFleet:
    """The running processes of a fleet, and the log that they write; at the end of `stack` all of them are killed."""

    def __init__(self, stack: ExitStack, folder: Path, every: tuple[int, ...]) -> None:
        self.socket = str(folder / "socket")
        self.log = folder / "log"
        self.log.touch()
        self._stack = stack
        # -P: the folder of the script has a module called redis.
        self._command = (sys.executable, "-P", shared_worker.__file__, f"unix://{self.socket}", str(self.log))
        self._every = cycle(every)
        self._running = list["subprocess.Popen[bytes]"]()

    def start(self, count: int) -> None:
        """Start so many processes, and wait until they are ready; they end when this process does."""
        ready = self.log.read_bytes().count(STARTED) + count
        for _ in range(count):
            command = (*self._command, str(next(self._every)))
            # In a group of its own, it gets no Ctrl-C; it ends with its input.
            process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # noqa: S603
            self._stack.enter_context(process)
            self._stack.callback(process.kill)
            self._running.append(process)
        self.wait_for(lambda log: log.count(STARTED) >= ready)

    def kill(self, count: int) -> None:
        """Send SIGKILL to the `count` oldest processes, and wait until they are dead."""
        killed, self._running = self._running[:count], self._running[count:]
        for process in killed:
            process.kill()
        for process in killed:
            process.wait()

    def wait_for(self, is_done: Callable[[bytes], bool], seconds: float = _LONGEST_WAIT) -> None:
        """Wait at most `seconds` until `is_done` is true of the log; RuntimeError if a process has ended by itself."""
        pause, end = threading.Event(), time.monotonic() + seconds
        while not is_done(self.log.read_bytes()) and time.monotonic() < end:
            if any(process.poll() is not None for process in self._running):
                raise RuntimeError("a process of the fleet ended by itself: this is a bug of the demo")
            pause.wait(_TICK)
