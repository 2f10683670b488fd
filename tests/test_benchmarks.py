"""The benchmarks run and say what they should; how fast anything is, is not tested."""

import asyncio
import gc
import json
import time

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.contenders import CONTENDERS, Waits
from benchmarks.measure import Effort, no_gc, race
from benchmarks.napping import no_sleeping
from benchmarks.table import OURS, PEERS, Outcome, Table, Target
from benchmarks.work import KEY, aflaky, flaky
from forbear.run.runtime import current

TINY = Effort(rounds=3, seconds=0.00001, processes=1, coroutines=20)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_finds_figures_for_all_it_compares(name: str) -> None:
    """Each contender has a positive figure, ours is among them, and every target can be judged."""
    table = BENCHMARKS[name](TINY)
    assert table.name == name
    assert all(sample > 0 for samples in table.samples.values() for sample in samples)
    assert name == "classify" or any(contender.startswith(OURS) for contender in table.samples)
    assert all(outcome.low <= outcome.median <= outcome.high for outcome in map(table.outcome, table.targets))
    assert f"[{name}]" in table.as_text()


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name != "L0 bare"])
def test_every_contender_retries(name: str) -> None:
    """With waits that take no time, each of them survives three failures, sync and async."""
    with no_sleeping():
        assert CONTENDERS[name].wrap(flaky(), Waits())(KEY) == KEY
        fetch = CONTENDERS[name].awrap(aflaky(), Waits())

        async def call() -> bytes:
            return await fetch(KEY)

        assert asyncio.run(call()) == KEY


def replaceable() -> tuple[object, ...]:
    """All that a benchmark replaces or turns off."""
    sleeps = (time.sleep, asyncio.sleep)  # noqa: TID251 - compared, never called
    return *sleeps, current.get(), gc.isenabled(), gc.get_freeze_count()


def test_nothing_stays_replaced() -> None:
    """Sleeping, the runtime and the garbage collector are as before once a benchmark is over."""
    before = replaceable()
    with no_sleeping(), no_gc():
        assert not set(replaceable()[:3]) & set(before[:3])
        assert not gc.isenabled()
    assert replaceable() == before


def test_a_slow_first_operation_does_not_make_samples_small() -> None:
    """What is loaded on first use must not pass for the usual cost, or one contender is measured unlike the others."""
    counts: list[int] = []

    def sampler(count: int) -> float:
        counts.append(count)
        return 10.0 if len(counts) == 1 else count * 0.001

    seconds = race({"lazy": sampler}, Effort(rounds=3, seconds=1, processes=1, coroutines=1))
    assert counts[-3:] == [1000, 1000, 1000]
    assert seconds["lazy"] == pytest.approx([0.001] * 3)


def test_ratios_are_taken_within_rounds() -> None:
    """A round in which the whole machine was slow changes no ratio."""
    table = Table("t", "title", "s", 1, {OURS: [1.0, 1.0, 10.0], "a": [2.0, 2.0, 20.0], "b": [9.0, 9.0, 9.0]}, ("a",))
    assert table.ratio(OURS, "a") == 0.5
    assert table._replace(peers=("a", "b")).outcome(Target(OURS, 1, PEERS)) == Outcome(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("low", "high", "judged"),
    [(0.8, 0.9, "met"), (0.9, 1.0, "met"), (0.9, 1.1, "too close to call"), (1.1, 1.2, "MISSED")],
)
def test_a_target_is_judged_only_where_the_noise_leaves_no_doubt(low: float, high: float, judged: str) -> None:
    """A limit between the bounds is neither met nor missed."""
    assert Outcome((low + high) / 2, low, high).judged(1.0) == judged


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints one document, with the targets judged."""
    assert main(["--quick", "--json", "--only", "happy"]) == 0
    [found] = json.loads(capsys.readouterr().out)["benchmarks"]
    assert found["name"] == "happy"
    assert found["targets"][0]["judged"] in {"met", "MISSED", "too close to call"}
    assert set(found["figures"]) == set(CONTENDERS)


def test_the_command_names_the_benchmarks_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name ends the command and lists the known ones."""
    with pytest.raises(SystemExit):
        main(["--only", "speed"])
    assert "there is no benchmark 'speed'; there are happy," in capsys.readouterr().err
