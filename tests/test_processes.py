"""Processes that import nothing from the current folder, which may hold code of others."""

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from forbear import processes
from forbear.processes import can_be_safe, safe_path
from forbear.simulate import Clients, Scenario, Server, runs, simulate

NAME = "PYTHONSAFEPATH"
SMALL = Scenario(2, 1, Clients(rate=2), Server(workers=1, time=0.05))
PROGRAM = """
import threading
from forbear.simulate import Clients, Scenario, Server, simulate

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # so that processes are not forked
    small = Scenario(2, 1, Clients(rate=1), Server(workers=1, time=0.05))
    print(simulate(small, engine="exact", runs=2, workers=2).runs)
"""


@pytest.mark.parametrize("options", [(), ("-E",)])
def test_simulations_import_nothing_from_the_current_folder(options: tuple[str, ...], tmp_path: Path) -> None:
    """Processes that are spawned for several runs start in a folder with traps, and none is run."""
    (tmp_path / "here").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    for name in ("random", "numpy", "pickle", "json"):
        (tmp_path / "here" / f"{name}.py").write_text("open('RUN', 'w').close()\n")
    command = [sys.executable, *options, str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=tmp_path / "here", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    assert not (tmp_path / "here" / "RUN").exists()


@pytest.mark.parametrize(
    ("safe", "ignores", "expected"), [(False, 0, True), (True, 0, True), (True, 1, True), (False, 1, False)]
)
def test_processes_can_be_safe(safe: bool, ignores: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `python -E` without -P or -I starts processes that ignore the environment."""
    flags = SimpleNamespace(safe_path=safe, ignore_environment=ignores)
    monkeypatch.setattr(processes, "sys", SimpleNamespace(flags=flags))
    assert can_be_safe() is expected


def test_without_safe_processes_all_runs_are_made_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is the same, and no process starts."""
    expected = simulate(SMALL, engine="exact", runs=3, workers=1)
    monkeypatch.setattr(runs, "can_be_safe", lambda: False)
    monkeypatch.setattr(runs, "worker_pool", None)  # it is not called
    assert simulate(SMALL, engine="exact", runs=3, workers=2) == expected


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_process_that_is_killed_costs_no_run(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is run in this process: another one would start without the safe path, or die alike."""
    made: list[object] = []

    def submit(pool: object, run: object, seed: int) -> Future[object]:
        future: Future[object] = Future()
        if len(made) < lost:
            future.set_result(runs._run(SMALL, "exact", seed))
        else:
            future.set_exception(BrokenProcessPool())
        made.append(future)
        return future

    expected = simulate(SMALL, engine="exact", runs=3, workers=1)
    monkeypatch.setattr(runs, "submit_to", submit)
    assert simulate(SMALL, engine="exact", runs=3, workers=2) == expected
    assert len(made) == 3


@pytest.mark.parametrize("before", [None, "", "0", "1"])
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_the_environment_is_restored(
    before: str | None, error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the block, also after an error in it, the variable is as it was."""
    monkeypatch.delenv(NAME, raising=False)
    if before is not None:
        monkeypatch.setenv(NAME, before)

    def block() -> None:
        with safe_path():
            assert os.environ[NAME] == "1"
            if error is not None:
                raise error

    if error is None:
        block()
    else:
        with pytest.raises(error):
            block()
    assert os.environ.get(NAME) == before


def test_threads_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two threads the second waits for the first, so neither keeps the variable of the other."""
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.setattr(processes, "_locks", {})
    together = Barrier(2)
    inside: list[int] = []

    def block(_: int) -> list[int]:
        together.wait()
        seen: list[int] = []
        for _turn in range(100):
            with safe_path():
                inside.append(1)
                seen.append(len(inside))
                assert os.environ[NAME] == "1"
                inside.pop()
        return seen

    with ThreadPoolExecutor(2) as threads:
        assert {count for seen in threads.map(block, range(2)) for count in seen} == {1}
    assert NAME not in os.environ
