"""`forbear demo`: what it says, what it promises about Cloud Storage, and that its referee sees what goes wrong."""

import asyncio
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.live import Live

from forbear.cli.app import app
from forbear.cli.demo import contest as contest_module
from forbear.cli.demo import counters, grants, killed, uploads
from forbear.cli.demo.ask import Ask, Operation, Send
from forbear.cli.demo.contenders import ATTEMPTS, once
from forbear.cli.demo.contest import Moment, contest
from forbear.cli.demo.killed import Killed
from forbear.cli.demo.referee import Claim, Deed, Outcome, Score, judge, score
from forbear.cli.demo.screen import Rows
from forbear.cli.demo.site import UPLOAD, Site, live
from forbear.cli.demo.tally import Tally
from forbear.cli.demo.weather import MOST, faults
from forbear.cli.demo.workload import KINDS, workload
from forbear.run.switch import disabled
from forbear.testing.cloud import Cloud
from forbear.testing.cloud.storage.store import Store
from tests.cli.conftest import UPLOADED, Invoke, replay, uploaded

OUTCOMES = [outcome.value for outcome in Outcome]


async def nothing(_: Send) -> None:
    """An operation that a test judges and nobody performs."""


READ = Operation("mine", True, nothing, wanted=b"right")
WRITE = Operation("mine", False, nothing, wanted=b"right", kept=lambda _: True)
ACT = Operation("mine", False, nothing, kept=lambda _: True)


def demo(seed: int, *more: str) -> Result:
    """Run a small one in this process."""
    return CliRunner().invoke(app, ["demo", "--seed", str(seed), "--each", "2", *more], catch_exceptions=False)


@pytest.fixture(scope="module")
def seven() -> Result:
    """One run for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest_module, "contest", recorded)
        patch.setattr(killed, "kill_and_run_again", uploaded(UPLOADED))
        return demo(7, "--json")


RESULTS: list[tuple[str, Score, float]] = []


def recorded(*args: Any) -> Iterator[tuple[str, Score, float]]:
    """The contest, whose results are kept to be shown again."""
    for result in contest(*args):
        RESULTS.append(result)
        yield result


def counts(contenders: dict[str, dict[str, int]]) -> dict[str, list[int]]:
    """The figures that are the same for the same seed."""
    return {name: [figures[outcome] for outcome in OUTCOMES] for name, figures in contenders.items()}


@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=pytest.mark.soak)])
def test_forbear_breaks_nothing_and_blind_repeats_do(seven: Result, seed: int) -> None:
    """In any storm forbear loses, duplicates and corrupts nothing; stdout has nothing but the JSON that says so."""
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
    monkeypatch.setattr(contest_module, "contest", replay(RESULTS))
    monkeypatch.setattr(killed, "kill_and_run_again", uploaded(UPLOADED))
    shown = demo(7)
    assert shown.exit_code == 0
    lines, told = shown.stdout.splitlines(), json.loads(seven.stdout)
    assert told.keys() == {"contenders", "iam", "redis", "upload"}
    assert told["upload"] == {**asdict(UPLOADED), "codes": [-9, 0]}
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
    assert "the same command, run again, sent from byte   32 505 856\n" in shown.stdout
    assert "Of the file 0.37 % was under way at kill -9" in shown.stdout
    assert "Read on: " in shown.stdout


@pytest.mark.soak
def test_the_same_seed_gives_the_same_figures(seven: Result) -> None:
    """The same storm does the same to each contender; that it is the same is tested below, in every run."""
    again = demo(7, "--json")
    assert counts(json.loads(again.stdout)["contenders"]) == counts(json.loads(seven.stdout)["contenders"])


GOOD = Score({"completed": 3, "failed": 1, "lost": 0, "duplicated": 0, "corrupted": 0}, 9, 3, 2, 1, 1)
BAD = Score(dict.fromkeys(OUTCOMES, 1), requests=9, faults=3, retries=2, unrepeatable=0, happened=1)
RIGHT = Tally(asked=4, counted=4, too_many=0, lost=0, failed=0, unknown=0)
SHORT = Tally(asked=4, counted=2, too_many=0, lost=0, failed=2, unknown=1)
TWICE = Tally(asked=4, counted=5, too_many=1, lost=0, failed=0, unknown=0)
LOST = Tally(asked=4, counted=3, too_many=0, lost=1, failed=0, unknown=0)
BUG = "that is a bug, please report it with --seed 5"


@pytest.mark.parametrize(
    ("storage", "iam", "redis", "upload", "code", "said"),
    [
        (GOOD, RIGHT, RIGHT, UPLOADED, 0, ["broke none.", "each is, once.", "the counters are right.", "there once"]),
        (GOOD, SHORT, SHORT, UPLOADED, 0, ["broke none.", "gave up 3 times, told so, and broke nothing."]),
        (BAD, RIGHT, RIGHT, UPLOADED, 1, [BUG, "1 are not, and failed on all attempts", "each is, once."]),
        (GOOD, TWICE, RIGHT, UPLOADED, 1, ["broke none.", BUG, "the counters are right."]),
        (GOOD, RIGHT, LOST, UPLOADED, 1, ["broke none.", "each is, once.", BUG]),
        (GOOD, RIGHT, RIGHT, replace(UPLOADED, continued_at=0), 1, ["the counters are right.", "sent from byte", BUG]),
    ],
    ids=["all-right", "given-up", "storage", "iam", "redis", "upload"],
)
def test_a_broken_promise_is_said_and_ends_in_1(
    storage: Score,
    iam: Tally,
    redis: Tally,
    upload: Killed,
    code: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Had forbear broken anything, or given up on what is safe, the output and the exit code would say so."""
    names = ("none", "naive", "forbear")
    monkeypatch.setattr(contest_module, "contest", replay([(name, storage, 1.0) for name in names]))
    monkeypatch.setattr(grants, "contest", replay([(name, iam) for name in names]))
    monkeypatch.setattr(counters, "contest", replay([(name, redis) for name in names]))
    monkeypatch.setattr(killed, "kill_and_run_again", uploaded(upload))
    shown = demo(5)
    assert shown.exit_code == code
    places = [shown.stdout.index(text) for text in said]
    assert places == sorted(places)


def test_it_needs_retries(invoke: Invoke) -> None:
    """Where retries are off there is nothing to show."""
    with disabled():
        refused = invoke("demo")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "hint: unset FORBEAR_DISABLED" in refused.stderr


@pytest.mark.parametrize(
    ("operation", "claim", "deeds", "kept", "outcome"),
    [
        (READ, Claim(True, b"right"), [], True, Outcome.COMPLETED),
        (READ, Claim(True, b"wrong"), [], True, Outcome.CORRUPTED),
        (READ, Claim(True, b"rightright"), [], True, Outcome.CORRUPTED),
        (READ, Claim(True), [], True, Outcome.CORRUPTED),
        (READ, Claim(False), [], True, Outcome.FAILED),
        (WRITE, Claim(True), [Deed("mine", "b/o", b"right")], True, Outcome.COMPLETED),
        (WRITE, Claim(True), [Deed("mine", "b/o", b"")], True, Outcome.CORRUPTED),
        (WRITE, Claim(False), [Deed("mine", "b/o", b"")], True, Outcome.CORRUPTED),
        (WRITE, Claim(True), [Deed("mine", "b/o", b"right")] * 2, True, Outcome.DUPLICATED),
        (WRITE, Claim(False), [Deed("mine", "b/o", b"right")] * 2, True, Outcome.DUPLICATED),
        (WRITE, Claim(False), [Deed("mine", "b/o", b"right")], True, Outcome.FAILED),
        (WRITE, Claim(False), [], False, Outcome.FAILED),
        (WRITE, Claim(True), [], True, Outcome.LOST),
        (WRITE, Claim(True), [Deed("mine", "b/o", b"right")], False, Outcome.LOST),
        (WRITE, Claim(True), [Deed("other", "b/o", b"right")], True, Outcome.LOST),
        (ACT, Claim(True), [Deed("mine", "k")], True, Outcome.COMPLETED),
        (ACT, Claim(True), [Deed("mine", "k1"), Deed("mine", "k2")], True, Outcome.DUPLICATED),
        (ACT, Claim(True), [], True, Outcome.LOST),
    ],
)
def test_the_referee_sees_it(
    operation: Operation, claim: Claim, deeds: list[Deed], kept: bool, outcome: Outcome
) -> None:
    """A loss, a duplicate and a corruption planted in the journal are found, whatever the client believes."""
    assert judge(operation, claim, deeds, kept=kept) is outcome


@pytest.mark.parametrize(
    ("order", "mine", "older"),
    [
        (["older", "mine", "older"], Outcome.LOST, Outcome.DUPLICATED),
        (["older", "older", "mine"], Outcome.COMPLETED, Outcome.DUPLICATED),
        (["older", "mine"], Outcome.COMPLETED, Outcome.COMPLETED),
        (["mine", "older"], Outcome.COMPLETED, Outcome.COMPLETED),
        (["mine", "older", "older"], Outcome.COMPLETED, Outcome.DUPLICATED),
    ],
)
def test_only_a_repeat_undoes_a_write(order: list[str], mine: Outcome, older: Outcome) -> None:
    """Who comes later may overwrite; who repeats what was overwritten since destroys somebody else's write."""
    deeds = [Deed(by, "b/o", b"right") for by in order]
    rival = Operation("older", False, nothing, wanted=b"right", kept=lambda _: True)
    assert judge(WRITE, Claim(True), deeds, kept=True) is mine
    assert judge(rival, Claim(True), deeds, kept=True) is older
    elsewhere = [Deed(deed.by, f"b/{deed.by}", deed.data) for deed in deeds]
    assert judge(WRITE, Claim(True), elsewhere, kept=True) is Outcome.COMPLETED


def test_the_score_is_taken_from_the_server() -> None:
    """On a real cloud: a repeat, wrong bytes, a deleted object and an honest failure are told apart by its journal."""
    names = ("fine", "twice", "wrong", "gone", "failed", "doubtful")

    def kept(name: str) -> Callable[[Store], bool]:
        return lambda store: live(store, name) is not None

    operations = [Operation(name, False, nothing, b"right", kept(name)) for name in names]

    async def write(cloud: Cloud) -> None:
        async with httpx.AsyncClient(base_url=cloud.url, trust_env=False) as client:
            for name, data in (
                *((name, b"right") for name in ("fine", "twice", "twice", "gone", "doubtful")),
                ("wrong", b"left"),
            ):
                await once(client, Ask(name, "write", "POST", f"{UPLOAD}?uploadType=media&name={name}", data))

    with Cloud() as cloud:
        Site(cloud.store, 1)
        asyncio.run(write(cloud))
        lost = live(cloud.store, "gone")
        assert lost is not None
        cloud.store.delete_object(lost, for_good=True)
        claims = {name: Claim(name not in ("failed", "doubtful")) for name in names}
        found = score(operations, claims, cloud)
    assert found.counts == {"completed": 1, "failed": 2, "lost": 1, "duplicated": 1, "corrupted": 1}
    assert (found.requests, found.retries, found.unrepeatable, found.happened) == (6, 1, 2, 1)
    assert not found.is_clean


def test_the_storm_knows_the_seed_and_the_request_and_nothing_else() -> None:
    """A request meets the same faults whoever sends it and when, never more than there are attempts for."""
    asks = [Ask(f"op-{number:03}", step, "GET", "/") for number in range(200) for step in ("read", "chunk-1")]
    drawn = {ask.key: faults(3, ask) for ask in asks}
    assert drawn == {ask.key: faults(3, ask) for ask in reversed(asks)}
    assert drawn != {ask.key: faults(4, ask) for ask in asks}
    assert max(map(len, drawn.values())) <= MOST < ATTEMPTS
    kinds = Counter(fault.name for found in drawn.values() for fault in found)
    assert kinds.keys() == {
        "status 503 before", "status 503 after", "status 429 before", "reset before", "reset after", "truncate after",
        "partial after",
    }  # fmt: skip
    assert not any(one != other and one in other for one in drawn for other in drawn)


def test_every_operation_has_a_name_of_its_own() -> None:
    """What the journal says of one operation is never said of another, and the order depends on the seed alone."""
    with_seed = [workload(Site(Cloud().store, 0), seed, 3) for seed in (1, 1, 2)]
    first, again, other = ([operation.name for group in groups for operation in group] for groups in with_seed)
    assert len(set(first)) == len(first) == 3 * (len(KINDS) + 1)
    assert first == again != other
    assert sorted(first) == sorted(other)


async def test_a_rival_that_did_not_come_is_no_success() -> None:
    """The other writer believes to have written only if somebody has let it write."""
    _, rival = uploads.rivals(Site(Cloud().store, 1), "shared")

    async def send(_: Ask) -> httpx.Response:
        return httpx.Response(200)

    with pytest.raises(RuntimeError, match="bug of the demo"):
        await rival.perform(send)


def test_rows_grow_on_a_terminal() -> None:
    """Each moment adds a bar to the row of its contender, and the totals come in the end."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=120)
    with Live(console=console, auto_refresh=False) as shown:
        rows = Rows(shown)
        for moment in (
            Moment("none", 0, 0, 0),
            Moment("none", 200, 0, 0),
            Moment("none", 200, 0, 3),
            Moment("none", 203, 3, 1),
        ):
            rows.watch(moment)
        assert "none   █·▁   203 requests, 3 met a fault, 1 waiting" in out.getvalue()
        rows.finished("none", Score({}, requests=204, faults=3, retries=0, unrepeatable=0, happened=0), 1.25)
        assert "none   █·▁   204 requests, 3 met a fault, 0 were repeats, 1.2 s" in out.getvalue()
