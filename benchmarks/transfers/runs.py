"""One run: a worker does a task while the service watches, and then what arrived is compared with what was sent."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.transfers.contenders import CONTENDERS
from benchmarks.transfers.files import checksums
from benchmarks.transfers.service import ROOT, Service, Weather
from benchmarks.transfers.task import Outcome, Task

PATIENCE = 600.0
"""Seconds after which a run is stopped."""
_DOWN, _UP = "down/", "up/"


class Run(NamedTuple):
    """What came of a run; `wrong` files are missing or have other bytes, `strays` are there and should not be.

    `again` counts generations beyond the one of each file, `seconds` of the server are of its CPU.
    """

    outcome: Outcome
    wrong: int
    strays: int
    again: int
    requests: int
    faults: int
    server_seconds: float

    @property
    def right(self) -> bool:
        """Whether all arrived, once, and nothing else, and the client says so."""
        return not (self.wrong or self.strays or self.again) and self.outcome.failed == 0


class Stage:
    """What the runs of one case share: the service, the files, the direction and the weather."""

    def __init__(
        self, service: Service, files: Path, *, up: bool, weather: Weather, share: float, peers: str, home: Path
    ) -> None:
        self._service = service
        self._files = files
        self._up = up
        self._weather: Weather = weather
        self._share = share
        self._peers = peers
        self._home = home
        self._sums = checksums(files)
        self._target = home / "fetched"
        service.empty()
        if not up:
            service.fill(files, _DOWN)

    def run(self, name: str) -> Run:
        """Let one contender do it, from the same beginning as all others."""
        if self._up:
            self._service.empty()
        shutil.rmtree(self._target, ignore_errors=True)
        self._target.mkdir()
        self._service.watch(self._weather, self._share)
        before = self._service.seen().seconds
        folder, prefix = (self._files, _UP) if self._up else (self._target, _DOWN)
        task = Task(self._service.url, prefix, str(folder), sorted(self._sums), self._up)
        outcome = work(name, task, self._peers, self._home)
        seen = self._service.seen()
        if self._up:
            found = {name.removeprefix(_UP): checksum for name, checksum in seen.stored.items()}
        else:
            found = checksums(self._target)
        shutil.rmtree(self._target)
        return Run(
            outcome,
            wrong=sum(found.get(name) != checksum for name, checksum in self._sums.items()),
            strays=len(found.keys() - self._sums.keys()),
            again=sum(count - 1 for count in seen.generations.values()),
            requests=seen.requests,
            faults=seen.faults,
            server_seconds=seen.seconds - before,
        )


def work(name: str, task: Task, peers: str, home: Path) -> Outcome:
    """Have a worker do the task; one that dies or takes for ever has failed, too."""
    process = _worker(name, peers, home)
    try:
        answer, said = process.communicate(json.dumps(task._asdict()), PATIENCE)
    except subprocess.TimeoutExpired:
        return Outcome(PATIENCE, failed=None, error=f"stopped after {PATIENCE:.0f} s")
    finally:
        _end(process)
    if not answer:
        return Outcome(PATIENCE, failed=None, error=_last_line(said))
    outcome = Outcome(**json.loads(answer))
    # All was done by then; but whoever calls such a process would take it for failed.
    return outcome._replace(error=f"it ended with {process.returncode}") if process.returncode else outcome


def version(name: str, peers: str, home: Path) -> tuple[bool, str]:
    """Whether a contender is installed, and its version, or what is missing."""
    process = _worker(name, peers, home)
    answer, said = process.communicate("")
    if process.returncode:
        return False, _last_line(said)
    return True, json.loads(answer)


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["it died without a word"])[-1][:200]


def _worker(name: str, peers: str, home: Path) -> "subprocess.Popen[str]":
    python = peers if CONTENDERS[name].peer else sys.executable
    # A home of its own: nobody's settings are read, and nothing is left there.
    environment = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
    environment |= {"HOME": str(home), "BOTO_CONFIG": os.devnull, "NO_GCE_CHECK": "true"}
    return subprocess.Popen(
        [python, "-m", "benchmarks.transfers.worker", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
        start_new_session=True,  # so that what a worker leaves behind can be ended with it
    )


def _end(process: "subprocess.Popen[str]") -> None:
    """End the worker and all that it started, if there is any of it left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
