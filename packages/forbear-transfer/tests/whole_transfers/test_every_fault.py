"""Plans of faults: whatever goes wrong, a transfer ends with the right bytes and one new generation, or fails clearly.

`make test` tries a sample of the plans, `make soak` thousands. `campaign/judge.py` checks the results. The error
of a plan that fails has all of it, and `plan_of(SEED)` makes it again.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, random_faults
from forbear_testkit.transfer.campaign.plans import (
    CHUNK,
    GET,
    INSERT,
    KIB,
    REWRITE,
    Cut,
    Direction,
    Json,
    Plan,
    plan_of,
)
from forbear_testkit.transfer.campaign.trial import try_plan
from forbear_transfer.functions import rsync
from forbear_transfer.storage.client import Settings

MIB = 1024 * KIB
SAMPLE, SOAK, TOGETHER = 60, 5_000, 100

LOST: Json = {"action": "reset", "when": "after", "nth": 1}
BROKEN: Json = {"action": "truncate", "keep": 700 * KIB, "data": True, "nth": 1}

UPLOADS: dict[str, tuple[int, tuple[Json, ...]]] = {
    "a small one whose reply is lost": (1_000, ({**LOST, "operation": INSERT},)),
    "a small one whose reply is an error, though it was done": (
        1_000,
        ({"action": "status", "code": 503, "when": "after", "operation": INSERT},),
    ),
    "a small one whose reply breaks off": (1_000, ({"action": "truncate", "keep": 20, "operation": INSERT},)),
    "an empty one whose reply is lost": (0, ({**LOST, "operation": INSERT},)),
    "a small one with a byte flipped on the way": (1_000, ({"action": "corrupt_upload", "at": 7},)),
    "a lost session start": (900 * KIB, ({**LOST, "operation": f"{INSERT}.start"},)),
    "308 without Range: nothing was kept": (900 * KIB, ({"action": "partial", "keep": 0, "status": 308, "nth": 2},)),
    "308 with a lower Range": (900 * KIB, ({"action": "partial", "keep": 70_000, "status": 308, "nth": 2},)),
    "a break after a part of a chunk": (900 * KIB, ({"action": "partial", "keep": 70_000, "nth": 2},)),
    "429 after a part of a chunk": (900 * KIB, ({"action": "partial", "keep": 70_000, "status": 429, "nth": 2},)),
    "acknowledged bytes forgotten": (900 * KIB, ({"action": "rewind", "to": CHUNK, "nth": 3},)),
    "all bytes forgotten": (900 * KIB, ({"action": "rewind", "to": 0, "nth": 3},)),
    "a session gone (410)": (900 * KIB, ({"action": "expire_session", "status": 410, "nth": 3},)),
    "a session gone (404)": (900 * KIB, ({"action": "expire_session", "status": 404, "nth": 3},)),
    "a session gone when asked": (
        900 * KIB,
        (
            {"action": "reset", "operation": f"{INSERT}.send", "nth": 2},
            {"action": "expire_session", "operation": f"{INSERT}.query"},
        ),
    ),
    "a lost final reply": (900 * KIB, ({**LOST, "operation": f"{INSERT}.send", "nth": 4},)),
    "a chunk with a byte flipped on the way": (900 * KIB, ({"action": "corrupt_upload", "at": 7, "nth": 2},)),
    "a byte flipped on the way, and a lost final reply": (
        900 * KIB,
        ({"action": "corrupt_upload", "at": 7, "nth": 2}, {"action": "partial", "keep": MIB, "nth": 3}),
    ),
    "a server that stops answering": (900 * KIB, ({"action": "stall", "operation": f"{INSERT}.send", "nth": 4},)),
}

COPIES: dict[str, tuple[Json, ...]] = {
    "a lost reply": ({**LOST, "operation": REWRITE},),
    "a reply that breaks off": ({"action": "truncate", "share": 0.5, "operation": REWRITE, "nth": 2},),
    "a last reply that breaks off": ({"action": "truncate", "share": 0.5, "operation": REWRITE, "nth": 4},),
    "a reply that stalls": ({"action": "stall", "keep": 20, "operation": REWRITE, "nth": 2},),
    "a last reply that is lost": ({**LOST, "operation": REWRITE, "nth": 4},),
    "an error, though it was done": ({"action": "status", "code": 503, "when": "after", "nth": 4},),
}

DOWNLOADS: dict[str, tuple[Json, ...]] = {
    "a break": (BROKEN,),
    "bytes corrupted on the way": ({"action": "corrupt", "at": 99, "data": True, "nth": 1},),
    "bytes corrupted on the way after a break": (BROKEN, {"action": "corrupt", "at": 99, "data": True, "nth": 2}),
    "another object in its place after a break": (BROKEN, {"action": "replace_object", "data": True, "nth": 2}),
    "200 where a range was asked for": (BROKEN, {"action": "ignore_range"}),
    "another range than asked for": (BROKEN, {"action": "other_range", "first": 5}),
    "416 where a range was asked for": (BROKEN, {"action": "refuse_range"}),
    "another object in its place while it is looked at": (
        {"action": "truncate", "share": 0.5, "operation": GET, "nth": 1},
        {"action": "replace_object", "operation": GET, "nth": 1},
    ),
    "a stall": ({"action": "stall", "keep": 300 * KIB, "data": True},),
}


def plan(direction: Direction, size: int, faults: tuple[Json, ...], *, older: bool, versioned: bool = False) -> Plan:
    """A plan of the names below."""
    return Plan(0, direction, size, older, versioned, faults)


@pytest.mark.parametrize("older", [False, True], ids=["nothing there", "older there"])
@pytest.mark.parametrize("name", UPLOADS)
def test_uploads_are_done_once(cloud: Cloud, tmp_path: Path, name: str, older: bool) -> None:
    """Exactly one new generation, with the right bytes, whether or not there was one before."""
    size, faults = UPLOADS[name]
    if older and faults[0].get("operation") == INSERT and "nth" not in faults[0]:
        faults = ({**faults[0], "nth": 2}, *faults[1:])  # the first attempt only finds out that there is one
    assert try_plan(plan("up", size, faults, older=older, versioned=True), cloud, tmp_path / "trial") == "done"


def test_a_write_that_may_have_happened_stays_possible(cloud: Cloud, tmp_path: Path) -> None:
    """Every later round looks for a write that may have happened, even after a round that denied it."""
    faults: tuple[Json, ...] = ({**LOST, "operation": INSERT}, {"action": "status", "code": 404, "operation": GET})
    assert try_plan(plan("up", 1_000, faults, older=False), cloud, tmp_path / "trial") == "done"


@pytest.mark.parametrize("older", [False, True], ids=["nothing there", "older there"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_are_done_once(cloud: Cloud, tmp_path: Path, name: str, older: bool) -> None:
    """Those that take several calls, too."""
    given = plan("copy", 3_000 * KIB, COPIES[name], older=older, versioned=True)
    assert try_plan(given, cloud, tmp_path / "trial") == "done"


STREAMS: dict[str, tuple[str, tuple[Json, ...]]] = {
    "a break": ("done", (BROKEN,)),
    "200 where a range was asked for": ("done", (BROKEN, {"action": "ignore_range"})),
    "416 where a range was asked for": ("done", (BROKEN, {"action": "refuse_range"})),
    "another object in its place after a break": (
        "failed: SourceChanged",
        (BROKEN, {"action": "replace_object", "data": True}),
    ),
    "wrong bytes that are out": ("failed: ChecksumMismatch", (BROKEN, {"action": "corrupt", "at": 99, "data": True})),
}


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_out_is_out(cloud: Cloud, tmp_path: Path, name: str) -> None:
    """A stream has each byte once, of one version, and if one of them is wrong that is said."""
    end, faults = STREAMS[name]
    given = replace(plan("out", 1_500 * KIB, faults, older=False), excuses=frozenset({"what is out is out"}))
    assert try_plan(given, cloud, tmp_path / "trial") == end


def test_wrong_bytes_that_are_out_do_not_turn_right(cloud: Cloud, tmp_path: Path) -> None:
    """When they come again, as they should have been, they are passed over: it is those that are out that count."""
    faults: tuple[Json, ...] = ({"action": "corrupt", "at": 99, "data": True}, {"action": "ignore_range"})
    given = plan("out", 1_500 * KIB, faults, older=False)
    given = replace(given, cuts=(Cut("down", 700 * KIB, "reset"),), excuses=frozenset({"what is out is out"}))
    assert try_plan(given, cloud, tmp_path / "trial") == "failed: ChecksumMismatch"


@pytest.mark.parametrize("direction", ["down", "sliced"])
@pytest.mark.parametrize("name", DOWNLOADS)
def test_downloads_are_right(cloud: Cloud, tmp_path: Path, name: str, direction: Direction) -> None:
    """The bytes of one version, all of them, and nothing beside them."""
    for versioned in (False, True):
        given = plan(direction, 1_500 * KIB, DOWNLOADS[name], older=True, versioned=versioned)
        assert try_plan(given, cloud, tmp_path / "trial") == "done"
        cloud.reset()


@pytest.mark.parametrize("code", [400, 403])
def test_a_failed_download_leaves_the_older_file(cloud: Cloud, tmp_path: Path, code: int) -> None:
    """Until all is right nothing is touched; the next run does it."""
    faults: tuple[Json, ...] = (BROKEN, {"action": "status", "code": code, "data": True, "times": 9})
    given = replace(plan("down", 1_500 * KIB, faults, older=True), excuses=frozenset({"a permanent error"}))
    assert try_plan(given, cloud, tmp_path / "trial") == "failed: HttpError"


@pytest.mark.parametrize("direction", ["up", "down"])
def test_patience_ends_and_the_next_run_goes_on(cloud: Cloud, tmp_path: Path, direction: Direction) -> None:
    """With one attempt each run fails at the first fault, and the last one sends only what is missing."""
    faults: tuple[Json, ...] = (BROKEN,) if direction == "down" else ({"action": "partial", "keep": 1, "nth": 4},)
    given = replace(plan(direction, 1_500 * KIB, faults, older=True), attempts=1, excuses=frozenset({"patience"}))
    assert try_plan(given, cloud, tmp_path / "trial").startswith("failed: ")
    assert cloud.requests.received() < 1_500 * KIB + CHUNK + 10 * KIB


@pytest.mark.parametrize("first", range(0, SAMPLE, 20))
def test_a_sample_of_plans(cloud: Cloud, tmp_path: Path, first: int) -> None:
    """A few plans of each kind of transfer."""
    _try_plans(cloud, tmp_path, range(first, first + 20))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SAMPLE, SAMPLE + SOAK, TOGETHER))
def test_thousands_of_plans(cloud: Cloud, tmp_path: Path, first: int) -> None:
    """All of them; most transfers end well, or the faults would prove little."""
    ends = _try_plans(cloud, tmp_path, range(first, first + TOGETHER))
    assert ends["done"] > TOGETHER / 2


def _try_plans(cloud: Cloud, folder: Path, seeds: range) -> Counter[str]:
    ends = Counter[str]()
    for seed in seeds:
        cloud.reset()
        ends[try_plan(plan_of(seed), cloud, folder / "trial")] += 1
    return ends


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 60))])
def test_a_folder_in_a_storm(cloud: Cloud, tmp_path: Path, seed: int) -> None:
    """Many files at once, there and back: each is made once, however often that is tried, and comes back as it was."""
    dice, here, back = Random(seed), tmp_path / "here", tmp_path / "back"
    (here / "below").mkdir(parents=True)
    sizes = [0, *(dice.randrange(60 * KIB) for _ in range(20)), *(dice.randrange(9 * MIB) for _ in range(2))]
    data = {("below/" if size % 2 else "") + f"file-{size}": dice.randbytes(size) for size in sizes}
    for name, content in data.items():
        (here / name).write_bytes(content)
    settings = Settings(endpoint=cloud.url, stall_timeout=1)
    with virtual_time(seed):
        for source, target in ((here, "gs://bkt/p"), ("gs://bkt/p", back)):
            cloud.fault(
                random_faults(seed, unavailable=0.15, throttled=0.1, reset_before=0.1, reset_after=0.1, truncated=0.1)
            )
            assert rsync(str(source), str(target), recursive=True, settings=settings).ok
            cloud.clear_faults()
            assert rsync(str(source), str(target), recursive=True, settings=settings).done == 0
    assert {effect.resource: effect.operation for effect in cloud.effects} == {f"bkt/p/{name}": INSERT for name in data}
    assert cloud.effects.count() == len(data)
    assert {str(each.relative_to(back)): each.read_bytes() for each in back.rglob("*") if each.is_file()} == data
