"""One policy serves many: threads, tasks and processes keep their runs apart."""

import subprocess
import sys
import threading
from random import Random

import anyio
import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.report import report
from forbear.policy import retry
from forbear.testing.script import AsyncScript, Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import Busy

SHARED = retry(on=Busy, attempts=6, timeout=None, backoff=Exponential(jitter="none"))


def starts(failures: int, takes: float) -> list[float]:
    """Return when the attempts of a run start that fails so often, if each attempt takes so many seconds."""
    found = [0.0]
    for n in range(min(failures, 5)):
        found.append(found[-1] + takes + 2**n)
    return found


def test_eight_threads() -> None:
    """Each thread's runs have their own attempts, waits and reports."""
    problems: list[object] = []

    def work(seed: int) -> None:
        draw = Random(seed)
        for _ in range(50):
            failures, takes = draw.randrange(8), draw.randrange(3)
            script = Script(*(failures * [Busy]), "done", takes=takes)
            with virtual_time():
                try:
                    SHARED.call(script)
                except Busy as error:
                    found = report(error)
                    if found is None or len(found.attempts) != 6:
                        problems.append(found)
            if [call.at for call in script.calls] != starts(failures, takes):
                problems.append((failures, takes, script.calls))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


@pytest.mark.parametrize("backend", ["asyncio", "trio", "uvloop"])
def test_two_hundred_tasks(backend: str) -> None:
    """All at once in one event loop, each as if it were alone; time passes once for all of them."""
    draw = Random(0)
    plans = [(draw.randrange(8), draw.randrange(3)) for _ in range(200)]
    scripts = [AsyncScript(*(failures * [Busy]), "done", takes=takes) for failures, takes in plans]

    async def run(script: AsyncScript) -> None:
        try:
            await SHARED.acall(script)
        except Busy as error:
            found = report(error)
            attempts.append(0 if found is None else len(found.attempts))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for script in scripts:
                group.start_soon(run, script)

    attempts: list[int] = []
    if backend == "uvloop":
        pytest.importorskip("uvloop", reason="it is a library in C, which has no wheels for some Pythons")
    name, options = ("asyncio", {"use_uvloop": True}) if backend == "uvloop" else (backend, None)
    with virtual_time() as time:
        anyio.run(main, backend=name, backend_options=options)
    for script, (failures, takes) in zip(scripts, plans, strict=True):
        assert [call.at for call in script.calls] == starts(failures, takes)
    assert set(attempts) == {6}
    assert len(attempts) == sum(failures > 5 for failures, _ in plans)
    assert time.elapsed == max(starts(failures, takes)[-1] + takes for failures, takes in plans)


FORK = """
import os, sys
import forbear
delays = []
policy = forbear.retry(
    on=OSError, attempts=4, backoff=forbear.Exponential(1e-6),
    on_event=lambda event: delays.append(getattr(event, "delay", None)),
)
def run():
    delays.clear()
    try:
        policy.call(os.stat, "/no/such/file")
    except OSError:
        print([delay for delay in delays if delay is not None], flush=True)
run()
child = os.fork()
run()
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_child_does_not_repeat_its_parents_jitter() -> None:
    """Or all workers of a server would retry in step."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    before, one, other = done.stdout.splitlines()
    assert len({before, one, other}) == 3


def test_a_long_run_of_a_constant_backoff() -> None:
    """A thousand attempts of one run: the counts stay exact."""
    policy = retry(on=Busy, attempts=1000, timeout=None, backoff=Constant(1))
    script = Script(*(1000 * [Busy]))
    with virtual_time() as time, pytest.raises(Busy):
        policy.call(script)
    assert len(script.calls) == 1000
    assert time.elapsed == 999
