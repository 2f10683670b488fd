"""The benchmarks run and say what they should; how fast anything is, is not tested."""

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.__main__ import BENCHMARKS, find, main
from benchmarks.contenders import CONTENDERS, Waits
from benchmarks.measure import Effort, no_gc, race
from benchmarks.napping import no_sleeping
from benchmarks.table import OURS, PEERS, Outcome, Table, Target
from benchmarks.transfers import runs
from benchmarks.transfers.cases import CASES, Plan
from benchmarks.transfers.contenders import RAW
from benchmarks.transfers.files import checksums, make_small
from benchmarks.transfers.report import Found
from benchmarks.transfers.service import Service, service
from benchmarks.transfers.task import BUCKET, Task
from benchmarks.transfers.task import Outcome as Transferred
from benchmarks.work import KEY, aflaky, flaky
from forbear.run.runtime import current

FEW = {"happy", "happy-async", "failures", "failures-async", "httpx", "redis", "shared-budget"}
"""The benchmarks that `make test` runs; `make soak` runs all."""

TINY = Effort(rounds=2, seconds=0.00001, processes=1, coroutines=20)


@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.soak) for name in BENCHMARKS],
)
def test_every_benchmark_finds_figures_for_all_it_compares(name: str) -> None:
    """Each contender has a positive figure, ours is among them, and every target can be judged."""
    table = find(name)(TINY)
    assert table.name == name
    assert all(sample > 0 for samples in table.samples.values() for sample in samples)
    assert name in ("classify", "evidence") or any(contender.startswith(OURS) for contender in table.samples)
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
    return *sleeps, current.get(), gc.isenabled(), gc.get_freeze_count() > 0


def test_nothing_stays_replaced() -> None:
    """Sleeping, the runtime and the garbage collector are as before once a benchmark is over."""
    before = replaceable()
    with no_sleeping(), no_gc():
        assert not set(replaceable()[:3]) & set(before[:3])
        assert not gc.isenabled()
    assert replaceable() == before


def test_a_slow_first_operation_does_not_make_samples_small() -> None:
    """The time to load modules on first use does not count as the usual cost, so all contenders are measured alike."""
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


@pytest.fixture(scope="module")
def cloud() -> Iterator[Service]:
    """The embedded cloud in a process of its own."""
    with service() as running:
        yield running


def staged(cloud: Service, folder: Path, *, up: bool) -> runs.Stage:
    """A case with three small files in fair weather."""
    make_small(folder / "files", 3)
    return runs.Stage(cloud, folder / "files", up=up, weather="fair", share=0, peers="false", home=folder)


def test_transfers_are_compared_in_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    """The floor moves all files in all of them, and says what the server saw; nobody is ahead of himself."""
    options = ["--size", "1", "--files", "3", "--rounds", "1", "--faults", "0.5", "--json", "--only", RAW]
    assert main(["transfers", *options]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert [case["name"] for case in cases] == [case.name for case in CASES if case.weather != "lost"]
    for case in cases:
        [run] = case["runs"][RAW]
        assert run["right"], run
        needed = {"large-up": 2, "large-down": 1, "small-up": 3, "small-down": 3}[case["name"].removesuffix("-503")]
        assert run["requests"] - run["faults"] == needed
        assert not run["faults"] or case["name"].endswith("-503")
        assert case["ratios"] == {RAW: 1.0}


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        OURS,
        pytest.param("google-cloud-storage", marks=pytest.mark.soak),
        pytest.param("transfer_manager", marks=pytest.mark.soak),
    ],
)
def test_every_contender_moves_all_files(cloud: Service, tmp_path: Path, name: str, up: bool) -> None:
    """Those of other environments are left to those who have them."""
    run = staged(cloud, tmp_path, up=up).run(name)
    assert run.right, run
    assert run.outcome.seconds > 0
    assert run.outcome.cpu > 0


def test_what_is_lost_doubled_or_left_behind_is_seen(
    cloud: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three files one arrives twice, one with other bytes and one not at all, and a fourth thing appears."""

    def careless(_name: str, task: Task, _peers: str, _home: Path) -> Transferred:
        first, second, _ = task.names
        for name, data in [(first, None), (first, None), (second, b"other"), ("stray", b"")]:
            params = {"uploadType": "media", "name": task.object(name)}
            content = task.file(name).read_bytes() if data is None else data
            httpx.post(f"{task.url}/upload/storage/v1/b/{BUCKET}/o", params=params, content=content)
        return Transferred(1.0)

    monkeypatch.setattr(runs, "work", careless)
    run = staged(cloud, tmp_path, up=True).run(OURS)
    assert (run.wrong, run.again, run.strays, run.right) == (2, 1, 1, False)
    case = CASES[2]
    text = Found(case, Plan(1, 3, 1, 0.0, ""), {OURS: [run], RAW: [run]}).as_text()
    assert "2 of 3 missing or wrong; 1 generations too many; 1 things left behind" in text
    assert "target MISSED" in text


def test_a_download_of_nothing_is_seen(cloud: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are looked for in the folder, and what a client says of itself does not count."""

    def idle(_name: str, _task: Task, _peers: str, _home: Path) -> Transferred:
        return Transferred(1.0)

    monkeypatch.setattr(runs, "work", idle)
    run = staged(cloud, tmp_path, up=False).run(OURS)
    assert (run.wrong, run.requests, run.right) == (3, 0, False)
    assert len(checksums(tmp_path / "files")) == 3


def test_a_contender_that_fails_is_reported(tmp_path: Path) -> None:
    """The report names a contender that raises an error, dies or is not installed."""
    task = Task("http://127.0.0.1:9", "up/", str(tmp_path), ["x"], True)
    (tmp_path / "x").touch()
    refused = runs.work(RAW, task, "false", tmp_path)
    assert (refused.failed, refused.error[:22]) == (None, "ConnectionRefusedError")
    assert runs.work("rclone", task, "false", tmp_path).error == "it died without a word"
    assert runs.version("rclone", "false", tmp_path) == (False, "it died without a word")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--only", "ftp"], "there is no contender 'ftp'"), (["--files", "0"], "--files must be at least 1")],
)
def test_the_command_for_transfers_says_what_it_cannot_do(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Before anything is started."""
    with pytest.raises(SystemExit):
        main(["transfers", *arguments])
    assert said in capsys.readouterr().err
