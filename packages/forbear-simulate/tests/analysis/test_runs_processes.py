"""The processes of several runs: they import nothing from the current folder, which may hold code of others."""

import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from forbear_simulate import Clients, Scenario, Server, simulate
from forbear_simulate.analysis import runs

SMALL = Scenario(2, 1, Clients(rate=2), Server(workers=1, time=0.05))
PROGRAM = """
import threading
from forbear_simulate import Clients, Scenario, Server, simulate

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # so that processes are not forked
    small = Scenario(2, 1, Clients(rate=1), Server(workers=1, time=0.05))
    print(simulate(small, engine="exact", runs=2, workers=2).runs)
"""


def test_simulations_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """Processes that are spawned for several runs start in a folder with traps, and none is run."""
    (tmp_path / "here").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    for name in ("random", "numpy", "pickle", "json"):
        (tmp_path / "here" / f"{name}.py").write_text("open('RUN', 'w').close()\n")
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=tmp_path / "here", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    assert not (tmp_path / "here" / "RUN").exists()


def test_without_safe_processes_all_runs_are_made_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is the same, and no process starts."""
    expected = simulate(SMALL, engine="exact", runs=3, workers=1)
    monkeypatch.setattr(runs, "can_be_safe", lambda: False)
    monkeypatch.setattr(runs, "worker_pool", None)  # it is not called
    assert simulate(SMALL, engine="exact", runs=3, workers=2) == expected


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_process_that_is_killed_costs_no_run(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest runs in this process: another one would start without the safe path, or die alike."""
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
