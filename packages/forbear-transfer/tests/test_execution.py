"""Execution: the items of a plan on other executors, each as here."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forbear import Constant
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import make
from forbear_transfer import Credentials, Item, Settings, Status, Url, cp, execute, perform_one, plan
from forbear_transfer import execution as engine_module

INSERT = "storage.objects.insert"
PATIENT = cloud_storage.policy.with_backoff(Constant(0.01)).with_attempts(10)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with some files."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path, *(f"dir/{number:02}" for number in range(40)))
    return tmp_path


class Ending(Executor):
    """Passes calls on to a busy executor, and shuts that down after the fourth of them."""

    def __init__(self, executor: Executor, go: threading.Event) -> None:
        self._executor = executor
        self._go = go
        self._left = 4

    def submit(self, *call: Any) -> Any:  # type: ignore[override]
        """Submit a call, and shut down after the last one."""
        future = self._executor.submit(*call)
        self._left -= 1
        if not self._left:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._go.set()
        return future


def planned(cloud: Cloud) -> tuple[list[Item], Settings]:
    """The items of a copy, and the settings for those who do them."""
    settings = Settings(endpoint=cloud.url, policy=PATIENT)
    return plan("dir", "gs://bkt/x/", recursive=True, settings=settings), settings


def disturb(cloud: Cloud) -> None:
    """Lose some responses, make others errors, and forbid one file."""
    cloud.fault(Fault.status(403, operation=INSERT))
    cloud.fault(Fault.status(503, operation=INSERT, times=3))
    cloud.fault(Fault.reset(when="after", operation=INSERT, times=3))


def check(cloud: Cloud, items: list[Item], executor: Executor, settings: Settings) -> None:
    """Have it done under faults, and see that it is as if it were done here."""
    disturb(cloud)
    outcomes = list(execute(items, executor, settings))
    assert sorted(str(one.item.target) for one in outcomes) == [str(item.target) for item in items]
    failures = [one for one in outcomes if one.status is Status.FAILED]
    assert len(failures) == 1, failures[0]
    failure = failures[0]
    assert "403" in (failure.error or "")
    assert failure.hint == "ask the owner of the bucket for the permission"
    assert sum(one.retries for one in outcomes) == 6
    assert cloud.effects.count(INSERT) == 39
    assert [one.status for one in execute([failure.item], executor, settings)] == [Status.DONE]
    assert cloud.effects.count(INSERT) == 40


def test_items_are_done_by_threads(here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them through one Storage, which is closed a while after."""
    monkeypatch.setattr("forbear_transfer.execution._LINGER", 0.4)
    items, settings = planned(cloud)
    with ThreadPoolExecutor(4) as executor:
        check(cloud, items, executor, settings)
    (thread,) = [one for one in threading.enumerate() if one.name == "forbear-transfer"]
    thread.join(10)
    assert not thread.is_alive()


def test_items_are_done_by_processes(here: Path, cloud: Cloud) -> None:
    """Nothing of this process is needed there, and outcomes come back as they are."""
    items, settings = planned(cloud)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        check(cloud, items, executor, settings)


@pytest.mark.usefixtures("forkable")
def test_a_forked_process_opens_a_storage_of_its_own(here: Path, cloud: Cloud) -> None:
    """Even if this one has one open."""
    items, settings = planned(cloud)
    assert perform_one(items[0], settings).status is Status.DONE
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        outcomes = list(execute(items[1:], executor, settings))
    assert {one.status for one in outcomes} == {Status.DONE}


@contextmanager
def dask(*, processes: bool) -> Generator[Executor]:
    """The executor of a client of Dask, with two workers, on loopback."""
    import distributed

    library: Any = distributed
    with (
        library.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        library.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        yield executor


def test_items_are_done_by_dask(here: Path, cloud: Cloud) -> None:
    """By workers in this process, through the executor of a client."""
    items, settings = planned(cloud)
    with dask(processes=False) as executor:
        check(cloud, items, executor, settings)


@pytest.mark.soak
def test_items_are_done_by_processes_of_dask(here: Path, cloud: Cloud) -> None:
    """As on other machines."""
    items, settings = planned(cloud)
    with dask(processes=True) as executor:
        check(cloud, items, executor, settings)


@pytest.mark.usefixtures("forkable")
def test_a_worker_that_dies_fails_its_items_and_a_rerun_does_them(here: Path, cloud: Cloud) -> None:
    """None is lost: each has an outcome, and what was done is done."""
    items, settings = planned(cloud)
    cloud.fault(Fault.delay(30, operation=INSERT, skip=10, times=None))
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        outcomes = execute(items, executor, settings, batch=5)
        first = next(outcomes)
        assert first.status is Status.DONE
        (worker,) = executor._processes
        os.kill(worker, signal.SIGKILL)
        rest = list(outcomes)
    failed = [one for one in (first, *rest) if one.status is Status.FAILED]
    assert len(rest) == 39
    assert len(failed) >= 30
    assert "BrokenProcessPool" in (failed[0].error or "")
    assert failed[0].hint == "run it again: finished items are recognised, and unfinished ones continue"
    cloud.clear_faults()
    assert cp("dir", "gs://bkt/x/", recursive=True, no_clobber=True, settings=settings).ok
    assert cloud.effects.count(INSERT) == 40


def test_an_executor_that_is_shut_down_fails_all_items(here: Path, cloud: Cloud) -> None:
    """They are failures like others, not an error in the middle of it."""
    items, settings = planned(cloud)
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    assert {one.status for one in execute(items, executor, settings)} == {Status.FAILED}


def test_what_a_shutdown_cancels_has_failed(here: Path, cloud: Cloud) -> None:
    """The outcomes come, and nobody waits for batches that never begin."""
    items, settings = planned(cloud)
    executor, go = ThreadPoolExecutor(1), threading.Event()
    executor.submit(go.wait)
    outcomes = execute(items, Ending(executor, go), settings, batch=10)
    assert [(one.status, one.error) for one in outcomes] == [(Status.FAILED, "CancelledError")] * 40
    assert cloud.effects.count(INSERT) == 0


def test_who_stops_listening_stops_what_has_not_begun(here: Path, cloud: Cloud) -> None:
    """The rest of the batches is cancelled."""
    items, settings = planned(cloud)
    with ThreadPoolExecutor(1) as executor:
        outcomes = execute(items, executor, settings, batch=1)
        next(outcomes)
        outcomes.close()  # type: ignore[attr-defined]
    assert cloud.effects.count(INSERT) < 40


def test_credentials_that_cannot_be_had_are_failures_with_a_cure(here: Path, cloud: Cloud) -> None:
    """Of each item, in the process that looked for them."""
    items, _ = planned(cloud)
    lost = Settings(endpoint=cloud.url, credentials=Credentials(file="/nowhere/key.json"))
    with ThreadPoolExecutor(1) as executor:
        outcomes = list(execute(items[:2], executor, lost))
    assert {one.status for one in outcomes} == {Status.FAILED}
    assert all("/nowhere/key.json" in (one.error or "") for one in outcomes)


def test_a_thread_that_cannot_be_started_stops_one_call(
    here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call starts another one: it does not wait for a thread that never ran."""
    items, settings = planned(cloud)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "forbear-transfer":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(engine_module, "_threads", {})  # none lingers from another test
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            perform_one(items[0], settings)
    assert settings not in engine_module._threads
    assert perform_one(items[0], settings).status is Status.DONE
    engine_module._close()


def test_streams_stay_here(cloud: Cloud) -> None:
    """Standard input is not that of another machine."""
    with pytest.raises(ValueError, match="cannot be sent to an executor"):
        execute([Item("-", Url("bkt", "x"))], ThreadPoolExecutor(1))
    with pytest.raises(ValueError, match="`batch` must be at least 1, got 0"):
        execute([], ThreadPoolExecutor(1), batch=0)


def test_what_is_left_open_is_closed_at_the_end(here: Path, cloud: Cloud) -> None:
    """At exit, without waiting for a quiet moment."""
    items, settings = planned(cloud)
    perform_one(items[0], settings)
    threads = [one for one in threading.enumerate() if one.name == "forbear-transfer"]
    engine_module._close()
    assert threads
    assert not any(one.is_alive() for one in threads)


def test_items_and_outcomes_survive_pickling(here: Path, cloud: Cloud) -> None:
    """All values that go between processes are equal after pickling."""
    cloud.store.put("bkt", "y/a", b"x")
    items, settings = planned(cloud)
    items += plan("gs://bkt/y", "down", recursive=True, settings=settings)
    cloud.fault(Fault.status(503, operation=INSERT, times=10))
    outcomes = [perform_one(item, settings) for item in (items[0], items[-1])]
    assert outcomes[0].report is not None
    for thing in (*items, *outcomes, settings):
        assert pickle.loads(pickle.dumps(thing)) == thing
