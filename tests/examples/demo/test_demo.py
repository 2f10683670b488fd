"""the demo: what it says, what it promises about Cloud Storage, and that its checker finds errors."""

import asyncio
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.live import Live

from examples.demo import command
from examples.demo import fleet as fleet_part
from examples.demo import iam as iam_part
from examples.demo import redis as redis_part
from examples.demo import shared as shared_part
from examples.demo import storage as storage_part
from examples.demo import upload as upload_part
from examples.demo.checker import Claim, DemoFinding, ObservedEffect, Score, Tally, check, score
from examples.demo.contenders import ATTEMPTS, once
from examples.demo.faults import MOST, random_faults
from examples.demo.model import UPLOAD, DemoBucket, DemoOperation, DemoRequest, Send, exists, live
from examples.demo.show import LiveProgress
from examples.demo.storage import Snapshot, compare
from examples.demo.upload import UploadResult
from examples.demo.workload import KINDS, rivals, workload
from forbear.run.switch import disabled
from forbear_cloud import Cloud
from forbear_cloud.storage.store import Store
from forbear_testkit.cli.demo import SHARED, UPLOADED, fleets, replay, shared_by, uploaded

FINDINGS = [finding.value for finding in DemoFinding]


async def nothing(_: Send) -> None:
    """Do nothing: the tests check this operation without performing it."""


READ = DemoOperation("mine", True, nothing, expected=b"right")
WRITE = DemoOperation("mine", False, nothing, expected=b"right", is_applied=lambda _: True)
ACT = DemoOperation("mine", False, nothing, is_applied=lambda _: True)


def demo(seed: int, *more: str) -> Result:
    """Run a small one in this process."""
    return CliRunner().invoke(command, ["--seed", str(seed), "--each", "2", *more], catch_exceptions=False)


@pytest.fixture(scope="module")
def seven() -> Result:
    """One run for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_part, "compare", recorded)
        patch.setattr(upload_part, "kill_and_run_again", uploaded(UPLOADED))
        patch.setattr(fleet_part, "compare", replay(fleets()))
        patch.setattr(shared_part, "share_a_budget", shared_by(SHARED))
        return demo(7, "--json")


RESULTS: list[tuple[str, Score, float]] = []


def recorded(*args: Any) -> Iterator[tuple[str, Score, float]]:
    """Run the comparison and record its results for other tests."""
    for result in compare(*args):
        RESULTS.append(result)
        yield result


def counts(contenders: dict[str, dict[str, int]]) -> dict[str, list[int]]:
    """The figures that are the same for the same seed."""
    return {name: [figures[outcome] for outcome in FINDINGS] for name, figures in contenders.items()}


@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=pytest.mark.soak)])
def test_forbear_breaks_nothing_and_blind_repeats_do(seven: Result, seed: int) -> None:
    """With any faults forbear loses, duplicates and corrupts nothing; stdout has only the JSON."""
    told = seven if seed == 7 else demo(seed, "--json")
    assert told.exit_code == 0
    contenders = json.loads(told.stdout)["contenders"]
    assert list(contenders) == ["none", "naive", "forbear"]
    assert {sum(each) for each in counts(contenders).values()} == {2 * (len(KINDS) + 1)}  # one kind has two parties
    assert contenders["naive"]["duplicated"] > 0
    assert contenders["none"]["failed"] > contenders["forbear"]["failed"]
    assert [contenders["forbear"][outcome] for outcome in ("lost", "duplicated", "corrupted")] == [0, 0, 0]
    assert contenders["none"]["retries"] == 0 < contenders["forbear"]["retries"] < contenders["naive"]["retries"]
    assert f"--seed {seed}" in told.stderr


def test_the_tables_have_the_same_figures(seven: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    """For people there is a table of each part with the same figures, what it shows, and why something failed."""
    monkeypatch.setattr(storage_part, "compare", replay(RESULTS))
    monkeypatch.setattr(upload_part, "kill_and_run_again", uploaded(UPLOADED))
    monkeypatch.setattr(fleet_part, "compare", replay(fleets()))
    monkeypatch.setattr(shared_part, "share_a_budget", shared_by(SHARED))
    shown = demo(7)
    assert shown.exit_code == 0
    lines, told = shown.stdout.splitlines(), json.loads(seven.stdout)
    assert told.keys() == {"contenders", "iam", "redis", "upload", "fleet", "shared"}
    assert told["upload"] == {**asdict(UPLOADED), "codes": [-9, 0]}
    assert told["fleet"]["without a budget"] < 0.3 < 0.9 < told["fleet"]["with a budget"]
    assert "A fleet in an outage, with a budget" in shown.stdout
    for title, expected in (
        ("Cloud Storage", counts(told["contenders"])),
        ("IAM", {name: list(figures.values()) for name, figures in told["iam"].items()}),
        ("Redis", {name: list(figures.values()) for name, figures in told["redis"].items()}),
    ):
        head = next(number for number, line in enumerate(lines) if line.startswith(f"{title} "))
        rows = [line.split() for line in lines[head + 1 : head + 4]]
        assert {row[0]: list(map(int, row[1:])) for row in rows} == expected
    assert "repeating what is safe broke none." in shown.stdout
    assert "that forbear left failed" in shown.stdout
    assert "unsafe to repeat" in shown.stdout
    assert re.search(r"the same command, run again, sent from byte +32 505 856\n", shown.stdout)
    assert "kill -9 cost 0.37 % of the file" in shown.stdout
    assert "Read on: " in shown.stdout


@pytest.mark.soak
def test_the_same_seed_gives_the_same_figures(seven: Result) -> None:
    """The same seed gives each contender the same figures."""
    again = demo(7, "--json")
    assert counts(json.loads(again.stdout)["contenders"]) == counts(json.loads(seven.stdout)["contenders"])


GOOD = Score({"completed": 3, "failed": 1, "lost": 0, "duplicated": 0, "corrupted": 0}, 9, 3, 2, 1, 1)
BAD = Score(dict.fromkeys(FINDINGS, 1), requests=9, faults=3, retries=2, unrepeatable=0, happened=1)
RIGHT = Tally(requested=4, counted=4, too_many=0, lost=0, failed=0, unknown=0)
SHORT = Tally(requested=4, counted=2, too_many=0, lost=0, failed=2, unknown=1)
TWICE = Tally(requested=4, counted=5, too_many=1, lost=0, failed=0, unknown=0)
LOST = Tally(requested=4, counted=3, too_many=0, lost=1, failed=0, unknown=0)
BUG = "that is a bug, please report it with --seed 5"


@pytest.mark.parametrize(
    ("storage", "iam", "redis", "upload", "code", "said"),
    [
        (
            GOOD,
            RIGHT,
            RIGHT,
            UPLOADED,
            0,
            ["broke none.", "is there once.", "the counters are right.", "exists once"],
        ),
        (GOOD, SHORT, SHORT, UPLOADED, 0, ["broke none.", "gave up 3 times, reported it, and broke nothing."]),
        (BAD, RIGHT, RIGHT, UPLOADED, 1, [BUG, "The other 1 failed on all attempts", "is there once."]),
        (GOOD, TWICE, RIGHT, UPLOADED, 1, ["broke none.", BUG, "the counters are right."]),
        (GOOD, RIGHT, LOST, UPLOADED, 1, ["broke none.", "is there once.", BUG]),
        (GOOD, RIGHT, RIGHT, replace(UPLOADED, continued_at=0), 1, ["the counters are right.", "sent from byte", BUG]),
    ],
    ids=["all-right", "given-up", "storage", "iam", "redis", "upload"],
)
def test_a_broken_promise_is_said_and_ends_in_1(
    storage: Score,
    iam: Tally,
    redis: Tally,
    upload: UploadResult,
    code: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Had forbear broken anything, or given up on what is safe, the output and the exit code would say so."""
    names = ("none", "naive", "forbear")
    monkeypatch.setattr(storage_part, "compare", replay([(name, storage, 1.0) for name in names]))
    monkeypatch.setattr(iam_part, "compare", replay([(name, iam) for name in names]))
    monkeypatch.setattr(redis_part, "compare", replay([(name, redis) for name in names]))
    monkeypatch.setattr(upload_part, "kill_and_run_again", uploaded(upload))
    monkeypatch.setattr(fleet_part, "compare", replay(fleets()))
    monkeypatch.setattr(shared_part, "share_a_budget", shared_by(SHARED))
    shown = demo(5)
    assert shown.exit_code == code
    places = [shown.stdout.index(text) for text in said]
    assert places == sorted(places)


def test_it_needs_retries() -> None:
    """The demo refuses to run while retries are off."""
    with disabled():
        refused = CliRunner().invoke(command)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "hint: unset FORBEAR_DISABLED" in refused.stderr


@pytest.mark.parametrize(
    ("operation", "claim", "effects", "applied", "finding"),
    [
        (READ, Claim(True, b"right"), [], True, DemoFinding.COMPLETED),
        (READ, Claim(True, b"wrong"), [], True, DemoFinding.CORRUPTED),
        (READ, Claim(True, b"rightright"), [], True, DemoFinding.CORRUPTED),
        (READ, Claim(True), [], True, DemoFinding.CORRUPTED),
        (READ, Claim(False), [], True, DemoFinding.FAILED),
        (WRITE, Claim(True), [ObservedEffect("mine", "b/o", b"right")], True, DemoFinding.COMPLETED),
        (WRITE, Claim(True), [ObservedEffect("mine", "b/o", b"")], True, DemoFinding.CORRUPTED),
        (WRITE, Claim(False), [ObservedEffect("mine", "b/o", b"")], True, DemoFinding.CORRUPTED),
        (WRITE, Claim(True), [ObservedEffect("mine", "b/o", b"right")] * 2, True, DemoFinding.DUPLICATED),
        (WRITE, Claim(False), [ObservedEffect("mine", "b/o", b"right")] * 2, True, DemoFinding.DUPLICATED),
        (WRITE, Claim(False), [ObservedEffect("mine", "b/o", b"right")], True, DemoFinding.FAILED),
        (WRITE, Claim(False), [], False, DemoFinding.FAILED),
        (WRITE, Claim(True), [], True, DemoFinding.LOST),
        (WRITE, Claim(True), [ObservedEffect("mine", "b/o", b"right")], False, DemoFinding.LOST),
        (WRITE, Claim(True), [ObservedEffect("other", "b/o", b"right")], True, DemoFinding.LOST),
        (ACT, Claim(True), [ObservedEffect("mine", "k")], True, DemoFinding.COMPLETED),
        (ACT, Claim(True), [ObservedEffect("mine", "k1"), ObservedEffect("mine", "k2")], True, DemoFinding.DUPLICATED),
        (ACT, Claim(True), [], True, DemoFinding.LOST),
    ],
)
def test_the_checker_finds_errors(
    operation: DemoOperation, claim: Claim, effects: list[ObservedEffect], applied: bool, finding: DemoFinding
) -> None:
    """The checker finds a loss, a duplicate and a corruption in the journal, whatever the client claims."""
    assert check(operation, claim, effects, applied=applied) is finding


@pytest.mark.parametrize(
    ("order", "mine", "older"),
    [
        (["older", "mine", "older"], DemoFinding.LOST, DemoFinding.DUPLICATED),
        (["older", "older", "mine"], DemoFinding.COMPLETED, DemoFinding.DUPLICATED),
        (["older", "mine"], DemoFinding.COMPLETED, DemoFinding.COMPLETED),
        (["mine", "older"], DemoFinding.COMPLETED, DemoFinding.COMPLETED),
        (["mine", "older", "older"], DemoFinding.COMPLETED, DemoFinding.DUPLICATED),
    ],
)
def test_only_a_repeat_undoes_a_write(order: list[str], mine: DemoFinding, older: DemoFinding) -> None:
    """A later writer may overwrite an object; a repeat of an older write that overwrites a newer one is a loss."""
    effects = [ObservedEffect(by, "b/o", b"right") for by in order]
    rival = DemoOperation("older", False, nothing, expected=b"right", is_applied=lambda _: True)
    assert check(WRITE, Claim(True), effects, applied=True) is mine
    assert check(rival, Claim(True), effects, applied=True) is older
    elsewhere = [ObservedEffect(effect.by, f"b/{effect.by}", effect.data) for effect in effects]
    assert check(WRITE, Claim(True), elsewhere, applied=True) is DemoFinding.COMPLETED


def test_the_score_is_taken_from_the_server() -> None:
    """The journal of a real cloud distinguishes a repeat, wrong bytes, a deleted object and a failure."""
    names = ("fine", "twice", "wrong", "gone", "failed", "doubtful")

    def is_applied(name: str) -> Callable[[Store], bool]:
        return lambda store: exists(store, name)

    operations = [DemoOperation(name, False, nothing, b"right", is_applied(name)) for name in names]

    async def write(cloud: Cloud) -> None:
        async with httpx.AsyncClient(base_url=cloud.url, trust_env=False) as client:
            for name, data in (
                *((name, b"right") for name in ("fine", "twice", "twice", "gone", "doubtful")),
                ("wrong", b"left"),
            ):
                await once(client, DemoRequest(name, "write", "POST", f"{UPLOAD}?uploadType=media&name={name}", data))

    with Cloud() as cloud:
        DemoBucket(cloud.store, 1)
        asyncio.run(write(cloud))
        lost = live(cloud.store, "gone")
        assert lost is not None
        cloud.store.delete_object(lost, for_good=True)
        claims = {name: Claim(name not in ("failed", "doubtful")) for name in names}
        found = score(operations, claims, cloud)
    assert found.counts == {"completed": 1, "failed": 2, "lost": 1, "duplicated": 1, "corrupted": 1}
    assert (found.requests, found.retries, found.unrepeatable, found.happened) == (6, 1, 2, 1)
    assert not found.is_clean


def test_random_faults_depend_on_the_seed_and_the_request_only() -> None:
    """A request meets the same faults whoever sends it and when, never more than there are attempts for."""
    names = [(f"op-{number:03}", step) for number in range(200) for step in ("read", "chunk-1")]
    requests = [DemoRequest(name, step, "GET", "/") for name, step in names]
    drawn = {request.key: random_faults(3, request) for request in requests}
    assert drawn == {request.key: random_faults(3, request) for request in reversed(requests)}
    assert drawn != {request.key: random_faults(4, request) for request in requests}
    assert max(map(len, drawn.values())) <= MOST < ATTEMPTS
    kinds = Counter(fault.name for found in drawn.values() for fault in found)
    assert kinds.keys() == {
        "status 503 before", "status 503 after", "status 429 before", "reset before", "reset after", "truncate after",
        "partial after",
    }  # fmt: skip
    assert not any(one != other and one in other for one in drawn for other in drawn)


def test_every_operation_has_a_name_of_its_own() -> None:
    """Names of operations are unique, and their order depends on the seed only."""
    with_seed = [workload(DemoBucket(Cloud().store, 0), seed, 3) for seed in (1, 1, 2)]
    first, again, other = ([operation.name for group in groups for operation in group] for groups in with_seed)
    assert len(set(first)) == len(first) == 3 * (len(KINDS) + 1)
    assert first == again != other
    assert sorted(first) == sorted(other)


async def test_a_rival_that_did_not_come_is_no_success() -> None:
    """The other writer's operation fails if its write was never made."""
    _, rival = rivals(DemoBucket(Cloud().store, 1), "shared")

    async def send(_: DemoRequest) -> httpx.Response:
        return httpx.Response(200)

    with pytest.raises(RuntimeError, match="bug of the demo"):
        await rival.perform(send)


def test_rows_grow_on_a_terminal() -> None:
    """Each moment adds a bar to the row of its contender, and the totals come in the end."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=120)
    with Live(console=console, auto_refresh=False) as shown:
        rows = LiveProgress(shown)
        for moment in (
            Snapshot("none", 0, 0, 0),
            Snapshot("none", 200, 0, 0),
            Snapshot("none", 200, 0, 3),
            Snapshot("none", 203, 3, 1),
        ):
            rows.watch(moment)
        assert "none   █·▁   203 requests, 3 met a fault, 1 waiting" in out.getvalue()
        rows.finished("none", Score({}, requests=204, faults=3, retries=0, unrepeatable=0, happened=0), 1.25)
        assert "none   █·▁   204 requests, 3 met a fault, 0 were retries, 1.2 s" in out.getvalue()
