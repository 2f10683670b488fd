"""Which files a copy or an rsync takes: patterns, sizes, times, limits of deletions, and dry runs."""

import os
from pathlib import Path
from typing import Any

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import contents, files, make
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import (
    Action,
    Settings,
    Status,
    Storage,
    Summary,
    acp,
    amv,
    aplan,
    arsync,
    cp,
    mv,
    plan,
    rsync,
)

WRITES = {"storage.objects.insert", "storage.objects.delete", "storage.objects.rewrite", "storage.objects.patch"}


def copied(cloud: Cloud, *args: str, **options: Any) -> Summary:
    """Copy in virtual time."""
    with virtual_time():
        return cp(list(args[:-1]), args[-1], settings=Settings(endpoint=cloud.url), **options)


def synced(cloud: Cloud, source: str, target: str, **options: Any) -> Summary:
    """Mirror in virtual time."""
    chosen: dict[str, Any] = {"recursive": True, **options}
    with virtual_time():
        return rsync(source, target, settings=Settings(endpoint=cloud.url), **chosen)


def at(path: Path, seconds: int, text: str) -> None:
    """Write a file that has this time."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))


PATTERNS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a.txt", "a.tmp", "b/c.txt", "b/d.log"}),
    ({"exclude": r".*\.tmp$"}, {"a.txt", "b/c.txt", "b/d.log"}),
    ({"exclude": [r".*\.tmp$", r".*\.log$"]}, {"a.txt", "b/c.txt"}),
    ({"include": r".*\.txt$"}, {"a.txt", "b/c.txt"}),
    ({"include": [r"a\.", r"b/d"]}, {"a.txt", "a.tmp", "b/d.log"}),
    ({"include": [r"a\.", r"b/"], "exclude": r".*\.txt$"}, {"a.tmp", "b/d.log"}),
    ({"include": (), "exclude": ()}, {"a.txt", "a.tmp", "b/c.txt", "b/d.log"}),
]


@pytest.mark.parametrize(("options", "names"), PATTERNS)
def test_exclude_and_include_choose_names(options: dict[str, Any], names: set[str], here: Path, cloud: Cloud) -> None:
    """Names are left out if one `exclude` matches or no `include` does: by cp both ways, and by rsync."""
    make(here, "dir/a.txt", "dir/a.tmp", "dir/b/c.txt", "dir/b/d.log")
    assert copied(cloud, "dir", "gs://bkt/cp", recursive=True, **options).ok
    assert synced(cloud, "dir", "gs://bkt/sync", **options).ok
    assert {name.removeprefix("cp/") for name in contents(cloud) if name.startswith("cp/")} == names
    assert {name.removeprefix("sync/") for name in contents(cloud) if name.startswith("sync/")} == names
    assert copied(cloud, "gs://bkt/sync", "back", recursive=True, **options).done == len(names)


def test_what_no_include_matches_is_not_deleted(here: Path, cloud: Cloud) -> None:
    """Names that are left out count on neither side."""
    make(here, "dir/a.txt")
    for name in ("x/old.txt", "x/old.log"):
        cloud.store.put("bkt", name, b"old")
    assert synced(cloud, "dir", "gs://bkt/x", delete=True, include=r".*\.txt$").ok
    assert set(contents(cloud)) == {"x/a.txt", "x/old.log"}


def test_a_dry_run_of_cp_changes_nothing(here: Path, cloud: Cloud) -> None:
    """Each item is reported with the target that it has in the real run, and nothing is written."""
    make(here, "dir/a", "dir/b")
    cloud.store.put("bkt", "x/a", b"old")
    recorder = Recorder()
    before = contents(cloud)
    options: dict[str, Any] = {"recursive": True, "no_clobber": True}
    summary = copied(cloud, "dir/", "gs://bkt/x", dry_run=True, on_event=recorder, **options)
    planned = {(str(each.item.target), each.item.action, each.status) for each in recorder.outcomes}
    real = copied(cloud, "dir/", "gs://bkt/x", **options)
    assert planned == {
        ("gs://bkt/x/dir/a", Action.COPY, Status.SKIPPED),
        ("gs://bkt/x/dir/b", Action.COPY, Status.SKIPPED),
    }
    assert (summary.done, summary.skipped, before) == (0, 2, {"x/a": b"old"})
    assert (real.done, set(contents(cloud))) == (2, {"x/a", "x/dir/a", "x/dir/b"})


def test_a_dry_run_skips_what_exists(here: Path, cloud: Cloud) -> None:
    """With `no_clobber`, targets in the cloud and on disk are looked up, and nothing is written."""
    make(here, "a", "b", "down/a")
    cloud.store.put("bkt", "x/a", b"old")
    for args in (("a", "b", "gs://bkt/x/"), ("gs://bkt/x/a", "down/")):
        recorder = Recorder()
        assert copied(cloud, *args, dry_run=True, no_clobber=True, on_event=recorder).done == 0
        skipped = [each.item.target for each in recorder.outcomes if each.item.action is Action.SKIP]
        assert [str(target) for target in skipped] in (["gs://bkt/x/a"], ["down/a"])
    assert not {each.operation for each in cloud.requests} & WRITES


def test_a_dry_run_reports_what_is_refused(here: Path, cloud: Cloud) -> None:
    """A source that is missing fails the dry run as it would fail the run."""
    make(here, "a")
    summary = copied(cloud, "a", "missing", "gs://bkt/x/", dry_run=True)
    assert [outcome.error for outcome in summary.failures] == ["missing does not exist"]
    assert contents(cloud) == {}


@pytest.mark.parametrize("sources", [["a", "b"], ["gs://bkt/a", "gs://bkt/b"]])
def test_a_dry_run_goes_on_after_what_may_not_be_looked_at(here: Path, cloud: Cloud, sources: list[str]) -> None:
    """Its item fails, and no other, as in the real run."""
    make(here, "a", "b")
    cloud.store.put("bkt", "a", b"")
    cloud.store.put("bkt", "b", b"")
    cloud.fault(Fault.status(403, operation="storage.objects.get", times=1))
    summary = copied(cloud, *sources, "gs://bkt/x/", dry_run=True, no_clobber=True)
    assert (summary.skipped, summary.failed) == (1, 1)
    assert "403 Forbidden" in (summary.failures[0].error or "")


def test_a_dry_run_keeps_the_names_of_an_interrupted_copy(here: Path, cloud: Cloud) -> None:
    """After an interrupted copy, the dry run shows the names that the next run uses; before it, it leaves no trace."""
    make(here, "dir/a", "dir/b")
    states = Path(os.environ["FORBEAR_STATE_DIR"])
    assert copied(cloud, "dir", "gs://bkt/x", recursive=True, dry_run=True).ok
    assert not [each for each in states.iterdir() if each.suffix != ".lock"]
    cloud.fault(Fault.status(403, operation="storage.objects.insert", nth=2))
    assert not copied(cloud, "dir", "gs://bkt/x", recursive=True, parallel=1).ok
    recorder = Recorder()
    copied(cloud, "dir", "gs://bkt/x", recursive=True, dry_run=True, on_event=recorder)
    assert {str(each.item.target) for each in recorder.outcomes} == {"gs://bkt/x/a", "gs://bkt/x/b"}
    assert copied(cloud, "dir", "gs://bkt/x", recursive=True).ok
    assert set(contents(cloud)) == {"x/a", "x/b"}


def test_size_only(here: Path, cloud: Cloud) -> None:
    """Files of equal size count as equal, whatever is in them; others are copied."""
    (here / "dir").mkdir()
    at(here / "dir" / "a", 1_000, "new a")
    at(here / "dir" / "b", 1_000, "new b, longer")
    for name in ("x/a", "x/b"):
        cloud.store.put("bkt", name, b"old a")
    assert synced(cloud, "dir", "gs://bkt/x", size_only=True).done == 1
    assert contents(cloud) == {"x/a": b"old a", "x/b": b"new b, longer"}
    assert synced(cloud, "gs://bkt/x", "gs://bkt/y", size_only=True).done == 2
    assert synced(cloud, "gs://bkt/x", "dir", size_only=True).done == 0
    assert synced(cloud, "dir", "gs://bkt/x").done == 1


@pytest.mark.parametrize(("ours", "theirs", "copies"), [(2_000, 1_000, 1), (1_000, 2_000, 0), (1_000, 1_000, 1)])
def test_a_newer_target_is_left_alone(ours: int, theirs: int, copies: int, here: Path, cloud: Cloud) -> None:
    """A file that is newer at the target is left alone, up and down; what the target lacks is copied."""
    for folder in ("dir", "down"):
        (here / folder).mkdir()
    at(here / "dir" / "a", theirs, "theirs, longer")
    assert synced(cloud, "dir", "gs://bkt/x").ok
    at(here / "dir" / "a", ours, "ours")
    at(here / "down" / "a", theirs, "theirs, longer")
    assert synced(cloud, "dir", "gs://bkt/x", update=True).done == copies
    assert contents(cloud) == {"x/a": b"ours" if copies else b"theirs, longer"}
    make(here, "dir/new")
    assert synced(cloud, "dir", "gs://bkt/x", update=True, include="new").done == 1
    if copies:
        assert synced(cloud, "gs://bkt/x", "down", update=True, include="a").done == 1
        assert (here / "down" / "a").read_text() == "ours"


@pytest.mark.parametrize(("most", "deleted"), [(None, 3), (3, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("dry_run", [False, True], ids=["run", "dry run"])
def test_max_delete(dry_run: bool, most: int | None, deleted: int, here: Path, cloud: Cloud) -> None:
    """All deletions are made if there are at most so many, and else none: the run fails, after the copies."""
    make(here, "dir/a")
    for name in ("x/1", "x/2", "x/3"):
        cloud.store.put("bkt", name, b"old")
    cloud.fault(Fault.reset(when="after", operation="storage.objects.delete", nth=2))
    summary = synced(cloud, "dir", "gs://bkt/x", delete=True, max_delete=most, dry_run=dry_run)
    assert summary.ok == (deleted > 0)
    if dry_run:
        assert set(contents(cloud)) == {"x/1", "x/2", "x/3"}
        assert summary.skipped == 1 + deleted
    else:
        assert len(contents(cloud)) == 4 - deleted
        assert cloud.effects.count("storage.objects.delete") == deleted
    for failure in summary.failures:
        assert failure.error == f"3 would be deleted, more than {most}, so nothing is deleted"
        assert failure.hint == "look at what would be deleted (`dry_run`), then raise `max_delete`"


@pytest.mark.parametrize("target", ["x", "x/b", "x/below/", "y", "./x/../x"])
async def test_nothing_is_copied_on_this_machine_alone(here: Path, cloud: Cloud, target: str) -> None:
    """Not even onto itself or into itself: every function refuses it before it reads or writes anything."""
    make(here, "x/a", "x/b")
    text = "must begin with gs://, got .*; on this machine alone, use the (cp|rsync) of the system"
    async with Storage(endpoint=cloud.url) as storage:
        for blocking, function in ((cp, acp), (plan, aplan), (rsync, arsync)):
            with pytest.raises(ValueError, match=text):
                blocking("x", target, recursive=True)
            with pytest.raises(ValueError, match=text):
                await function(storage, "x", target, recursive=True)
        for source in ("x/a", "gs://bkt/x"):
            with pytest.raises(ValueError, match="must begin with gs://"):
                mv(source, target, recursive=True)
            with pytest.raises(ValueError, match="must begin with gs://"):
                await amv(storage, source, target, recursive=True)
    assert files(here) == {"x/a": b"x/a", "x/b": b"x/b"}
    assert not cloud.requests
