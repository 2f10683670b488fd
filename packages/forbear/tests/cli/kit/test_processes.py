"""Processes that import nothing from the current folder, which may hold code of others."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import pytest

from forbear.cli.kit import processes
from forbear.cli.kit.processes import can_be_safe, end, safe_path, submit_to, worker_pool

NAME = "PYTHONSAFEPATH"


@pytest.mark.parametrize(
    ("safe", "ignores", "expected"), [(False, 0, True), (True, 0, True), (True, 1, True), (False, 1, False)]
)
def test_processes_can_be_safe(safe: bool, ignores: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `python -E` without -P or -I starts processes that ignore the environment."""
    flags = SimpleNamespace(safe_path=safe, ignore_environment=ignores)
    monkeypatch.setattr(processes, "sys", SimpleNamespace(flags=flags))
    assert can_be_safe() is expected


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


def test_nothing_of_a_pool_is_left_at_its_end() -> None:
    """Its thread is gone, too: it closes pipes to which the interpreter writes at its end."""
    before = {*threading.enumerate()}
    pool = worker_pool(1, "fork")
    submit_to(pool, os.getpid).result()
    assert {*threading.enumerate()} - before
    end(pool)
    assert {*threading.enumerate()} <= before
