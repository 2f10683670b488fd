"""cp: many items over one Storage, and what becomes of each."""

import asyncio
import csv
import gc
import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import contents, files, make
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Settings, Status, Storage, TransferError, Url, acp, cp, perform_one, plan
from forbear_transfer.progress import Finished, Planned, TransferEvent
from forbear_transfer.workers import worker_pool as fleet_module
from forbear_transfer.workers.worker_pool import Limiter

INSERT, GET, REWRITE = "storage.objects.insert", "storage.objects.get", "storage.objects.rewrite"


def test_a_folder_goes_up_and_comes_back(here: Path, cloud: Cloud) -> None:
    """Up, across and down, with the same bytes and modification times."""
    make(here, "dir/a", "dir/sub/b", "dir/sub/empty")
    (here / "dir/sub/empty").write_bytes(b"")
    os.utime(here / "dir" / "a", (1_000_000_000, 1_000_000_000))
    settings = Settings(endpoint=cloud.url)
    up = cp("dir", "gs://bkt/up", recursive=True, settings=settings)
    across = cp("gs://bkt/up", "gs://bkt/across", recursive=True, settings=settings)
    down = cp("gs://bkt/across", "down", recursive=True, settings=settings)
    for summary in (up, across, down):
        assert (summary.ok, summary.done, summary.skipped, summary.failed) == (True, 3, 0, 0)
        assert summary.bytes == len("dir/a") + len("dir/sub/b")
    assert files(here / "down") == files(here / "dir")
    assert (here / "down" / "a").stat().st_mtime == 1_000_000_000
    assert len(cloud.effects) == 6


def test_the_listener_gets_every_event(here: Path, cloud: Cloud) -> None:
    """The listener gets the plan, and the begin, progress, retries and end of each item."""
    make(here, "dir/a", "dir/bb")
    cloud.fault(Fault.status(503, operation=INSERT))
    recorder = Recorder()
    with virtual_time():
        summary = cp("dir", "gs://bkt", recursive=True, settings=Settings(endpoint=cloud.url), on_event=recorder)
    assert recorder.plans == [(1, 5, False), (2, 11, False), (2, 11, True)]
    assert [item.source for item in recorder.begun] == ["dir/a", "dir/bb"]
    assert recorder.bytes == summary.bytes == 11
    assert [event.failure.error for event in recorder.retries] == ["HTTP 503"]
    assert {outcome.item.source: outcome.retries for outcome in recorder.outcomes}.keys() == {"dir/a", "dir/bb"}
    assert summary.retries == 1
    for outcome in recorder.outcomes:
        assert not isinstance(outcome.item.target, str)
        stored = cloud.store.object("bkt", outcome.item.target.name)
        assert (outcome.generation, outcome.crc32c) == (stored.generation, stored.crc32c)


def test_one_that_fails_stops_no_other(here: Path, cloud: Cloud) -> None:
    """The summary has each failure with its reason, its cure and what was tried."""
    make(here, *(f"dir/{number:02}" for number in range(30)))
    (here / "dir" / "07").chmod(0)
    cloud.fault(Fault.status(403, operation=INSERT, path="upload", times=1))
    summary = cp("dir", "gs://bkt", recursive=True, settings=Settings(endpoint=cloud.url))
    expected = 1 if os.geteuid() == 0 else 2  # nothing is forbidden to root
    assert (summary.done, summary.failed, summary.ok) == (30 - expected, expected, False)
    failure = next(one for one in summary.failures if "403" in (one.error or ""))
    assert failure.hint == "ask the owner of the bucket for the permission"


def test_the_report_of_a_failure_has_each_attempt(here: Path, cloud: Cloud) -> None:
    """The report has each attempt, and why there was no other."""
    make(here, "a", "b")
    cloud.fault(Fault.status(503, operation=INSERT, path="upload", times=None))
    policy = cloud_storage.policy.with_attempts(3)
    with virtual_time():
        summary = cp(["a", "b"], "gs://bkt", settings=Settings(endpoint=cloud.url, policy=policy))
    assert [outcome.retries for outcome in summary.failures] == [2, 2]
    report = summary.failures[0].report
    assert report is not None
    assert len(report.attempts) == 3


def test_a_lost_response_makes_no_second_generation(here: Path, cloud: Cloud) -> None:
    """Each of many small files has one generation, although many responses are lost."""
    make(here, *(f"dir/{number:03}" for number in range(100)))
    cloud.fault(Fault.reset(when="after", operation=INSERT, probability=0.3, times=None))
    with virtual_time():
        summary = cp("dir", "gs://bkt", recursive=True, settings=Settings(endpoint=cloud.url))
    assert summary.ok
    assert cloud.effects.count(INSERT) == 100
    assert contents(cloud) == files(here)


@pytest.mark.parametrize(
    ("source", "target"), [("dir/*", "gs://bkt/x/"), ("gs://bkt/from/*", "gs://bkt/x/"), ("gs://bkt/from/*", "down")]
)
def test_what_is_there_is_skipped_with_no_clobber(source: str, target: str, here: Path, cloud: Cloud) -> None:
    """Up, across and down; as a condition of the write itself."""
    make(here, "dir/a", "dir/b", "down/a")
    for name in ("from/a", "from/b", "x/a"):
        cloud.store.put("bkt", name, name.encode())
    recorder = Recorder()
    summary = cp(source, target, no_clobber=True, settings=Settings(endpoint=cloud.url), on_event=recorder)
    assert (summary.ok, summary.done, summary.skipped) == (True, 1, 1)
    assert recorder.said(Status.SKIPPED).keys() == {source.replace("*", "a")}
    assert contents(cloud)["x/a"] == b"x/a"
    assert (here / "down" / "a").read_bytes() == b"down/a"
    written = (here / "down" / "b").read_bytes() if target == "down" else contents(cloud)["x/b"]
    assert written == source.removeprefix("gs://bkt/").replace("*", "b").encode()


def test_the_version_that_was_named_is_the_one_that_is_copied(here: Path, cloud: Cloud) -> None:
    """Down and across; whatever a listing says of a newer one."""
    cloud.store.create_bucket("kept", fields={"versioning": {"enabled": True}})
    old = cloud.store.put("kept", "name", b"old").generation
    cloud.store.put("kept", "name", b"new")
    settings = Settings(endpoint=cloud.url)
    assert cp(f"gs://kept/name#{old}", here / "down", settings=settings).ok
    assert cp(f"gs://kept/name#{old}", "gs://bkt/across", settings=settings).ok
    (listed,) = plan("gs://kept/*", f"{here}/", settings=settings)
    assert listed.object is not None
    for target in (Url("bkt", "again"), str(here / "again")):
        item = replace(listed, source=Url("kept", "name", old), target=target)
        assert perform_one(item, settings).status is Status.DONE
    assert contents(cloud) == {"across": b"old", "again": b"old"}
    assert files(here) == {"down": b"old", "again": b"old"}


def test_standard_input_goes_up_and_an_object_to_standard_output(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """With - as the source or the target."""
    settings = Settings(endpoint=cloud.url)
    with io.TextIOWrapper(io.BytesIO(b"from stdin")) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cp("-", "gs://bkt/x", settings=settings).ok
    assert contents(cloud) == {"x": b"from stdin"}
    assert cp("gs://bkt/x", "-", settings=settings).ok
    sys.stdout.buffer.flush()
    assert capfdbinary.readouterr().out == b"from stdin"


def test_nothing_is_written_outside_of_the_target(here: Path, cloud: Cloud) -> None:
    """Not by names, nor through links to folders or files that lie in the target."""
    make(here, "outside/precious", "target/inside/x")
    (here / "target" / "link").symlink_to("../outside")
    (here / "target" / "file").symlink_to("../outside/precious")
    (here / "target" / "dangling").symlink_to("../outside/new")
    (here / "target" / "within").symlink_to("inside")
    for name in ("../outside/precious", "link/precious", "link/deep/new", "file", "dangling", "within/y", "ok"):
        cloud.store.put("bkt", f"d/{name}", b"evil")
    summary = cp("gs://bkt/d/*", "target", recursive=True, settings=Settings(endpoint=cloud.url))
    assert files(here / "outside") == {"precious": b"outside/precious"}
    assert files(here / "target").keys() >= {"ok", "inside/y"}
    assert sorted(str(outcome.item.source) for outcome in summary.failures) == [
        "gs://bkt/d/../", "gs://bkt/d/dangling", "gs://bkt/d/file", "gs://bkt/d/link/deep/new",
        "gs://bkt/d/link/precious",
    ]  # fmt: skip
    assert "leads out of the target" in (summary.failures[-1].error or "")


def test_a_file_where_a_folder_must_be_is_in_the_way(here: Path, cloud: Cloud) -> None:
    """And stays as it is; so does a folder where a file must be."""
    make(here, "target/a", "target/b/c")
    cloud.store.put("bkt", "d/a/x", b"x")
    cloud.store.put("bkt", "d/b", b"x")
    summary = cp("gs://bkt/d/*", "target", recursive=True, settings=Settings(endpoint=cloud.url))
    said = {str(one.item.source): one.error or "" for one in summary.failures}
    assert said["gs://bkt/d/a/x"] == "cannot make the folder target/a: File exists: target/a is no folder"
    assert "it is a folder" in said["gs://bkt/d/b"]
    assert files(here / "target") == {"a": b"target/a", "b/c": b"target/b/c"}


def test_a_second_run_does_what_the_first_would_have(here: Path, cloud: Cloud) -> None:
    """The first has made the target a folder, but the names stay the same until all is done; then cp's rule holds."""
    make(here, "dir/a", "dir/b")
    settings = Settings(endpoint=cloud.url)
    cloud.fault(Fault.status(403, operation=INSERT, path="upload"))
    assert cp("dir", "gs://bkt/new", recursive=True, settings=settings).failed == 1
    assert cp("dir", "gs://bkt/new", recursive=True, settings=settings).ok
    assert contents(cloud).keys() == {"new/a", "new/b"}
    assert cp("dir", "gs://bkt/new", recursive=True, settings=settings).ok
    assert contents(cloud).keys() == {"new/a", "new/b", "new/dir/a", "new/dir/b"}


@pytest.mark.parametrize("source", ["gs://bkt/a", "gs://bkt/a*"])
def test_a_file_gets_its_time_back(here: Path, cloud: Cloud, source: str) -> None:
    """A file gets its time back, whether it is named or matches a pattern."""
    make(here, "a")
    os.utime("a", (1_000_000_000, 1_000_000_000))
    settings = Settings(endpoint=cloud.url)
    assert cp("a", "gs://bkt/", settings=settings).ok
    (here / "out").mkdir()
    assert cp(source, "out", settings=settings).ok
    assert (here / "out" / "a").stat().st_mtime == 1_000_000_000


def test_a_run_that_was_given_up_is_forgotten_after_a_week(here: Path, cloud: Cloud) -> None:
    """A folder that exists a week later belongs to somebody else, and the copy goes below it."""
    make(here, "dir/a")
    settings = Settings(endpoint=cloud.url)
    with virtual_time() as time:
        cloud.fault(Fault.status(403, operation=INSERT, path="upload", times=1))
        assert cp("dir", "gs://bkt/new", recursive=True, settings=settings).failed == 1
        cloud.store.put("bkt", "new/other", b"")
        time.advance(8 * 24 * 3600)
        assert cp("dir", "gs://bkt/new", recursive=True, settings=settings).ok
    assert contents(cloud).keys() == {"new/other", "new/dir/a"}


def test_a_manifest_says_what_was_done_and_saves_doing_it_again(here: Path, cloud: Cloud) -> None:
    """The second run does only what the first did not."""
    make(here, "dir/a", "dir/b", "dir/c\nd")
    settings = Settings(endpoint=cloud.url)
    manifest = here / "manifest.csv"
    cloud.fault(Fault.status(403, operation=INSERT, path="upload"))
    assert cp("dir", "gs://bkt/x/", recursive=True, manifest=manifest, settings=settings).failed == 2
    with manifest.open(newline="") as file:
        assert sorted(row["Result"] for row in csv.DictReader(file)) == ["OK", "error", "error"]
    recorder = Recorder()
    (here / "dir" / "c\nd").rename(here / "dir" / "cd")
    second = cp("dir", "gs://bkt/x/", recursive=True, manifest=manifest, settings=settings, on_event=recorder)
    assert (second.done, second.skipped, second.failed) == (2, 1, 0)
    assert list(recorder.said(Status.SKIPPED).values()) == ["done before, by the manifest"]
    assert cloud.effects.count(INSERT) == 3
    third = cp("dir", "gs://bkt/x/", recursive=True, manifest=manifest, settings=settings)
    assert (third.done, third.skipped) == (0, 3)


def test_a_manifest_that_cannot_be_written_is_an_error_of_the_whole(here: Path, cloud: Cloud) -> None:
    """Nothing is done that could not be noted."""
    make(here, "a")
    with pytest.raises(TransferError, match="cannot write the manifest"):
        cp("a", "gs://bkt", manifest=here / "nowhere" / "m", settings=Settings(endpoint=cloud.url))
    with pytest.raises(TransferError, match="cannot write the manifest /dev/full: No space left"):
        cp("a", "gs://bkt", manifest=Path("/dev/full"), settings=Settings(endpoint=cloud.url))
    assert contents(cloud) == {}


def test_fewer_requests_are_sent_at_a_time_to_a_busy_server(here: Path, cloud: Cloud) -> None:
    """Throttled responses halve the number of transfers at a time, and all succeed in the end."""
    limiters = []

    class Watched(Limiter):
        def __init__(self, maximum: int, start: int = 16) -> None:
            super().__init__(maximum, start)
            self.least = start
            limiters.append(self)

        def throttled(self, seen: int) -> int:
            known = super().throttled(seen)
            self.least = min(self.least, self.limit)
            return known

    make(here, *(f"dir/{number:03}" for number in range(120)))
    cloud.fault(Fault.status(429, operation=INSERT, times=20))
    with pytest.MonkeyPatch.context() as patch, virtual_time():
        patch.setattr(fleet_module, "Limiter", Watched)
        assert cp("dir", "gs://bkt", recursive=True, settings=Settings(endpoint=cloud.url)).done == 120
    assert limiters[0].least <= 8
    assert limiters[0].cuts < 20


def test_no_more_are_under_way_than_asked_for(here: Path, cloud: Cloud) -> None:
    """With `parallel=1`, each waits for the one before it."""
    make(here, *(f"dir/{number}" for number in range(10)))
    recorder = Recorder()
    cp("dir", "gs://bkt", recursive=True, parallel=1, settings=Settings(endpoint=cloud.url), on_event=recorder)
    assert [outcome.item for outcome in recorder.outcomes] == recorder.begun
    with pytest.raises(ValueError, match="`parallel` must be at least 1, got 0"):
        cp("dir", "gs://bkt", recursive=True, parallel=0, settings=Settings(endpoint=cloud.url))


async def test_what_is_cancelled_can_be_run_again(here: Path, cloud: Cloud) -> None:
    """Everything stops at once, nothing is left open, and the next run does the rest."""
    make(here, *(f"dir/{number:03}" for number in range(50)))
    cloud.fault(Fault.delay(30, operation=INSERT, skip=20, times=None))
    async with Storage(endpoint=cloud.url) as storage:
        before = asyncio.all_tasks()
        task = asyncio.create_task(acp(storage, "dir", "gs://bkt/new", recursive=True))
        while cloud.effects.count(INSERT) < 20:
            await asyncio.wait([task], timeout=0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
        cloud.clear_faults()
        gc.collect()
        assert (await acp(storage, "dir", "gs://bkt/new", recursive=True)).ok
    assert contents(cloud).keys() == {f"new/{number:03}" for number in range(50)}


async def test_inside_an_event_loop_the_blocking_form_says_what_to_do(cloud: Cloud) -> None:
    """It would stop all else."""
    with pytest.raises(RuntimeError, match="await `acp` instead"):
        cp("gs://bkt/x", "new", settings=Settings(endpoint=cloud.url))


async def test_an_error_of_a_listener_is_not_hidden(here: Path, cloud: Cloud) -> None:
    """An error raised by the caller's listener is raised unchanged, and stops all transfers."""

    def broken(event: TransferEvent) -> None:
        if isinstance(event, Finished):
            raise ZeroDivisionError

    make(here, "dir/a", "dir/b")
    async with Storage(endpoint=cloud.url) as storage:
        with pytest.raises(ZeroDivisionError):
            await acp(storage, "dir", "gs://bkt/new", recursive=True, on_event=broken)


def test_a_source_that_is_replaced_between_the_listing_and_the_copy_is_copied_as_it_is_then(
    here: Path, cloud: Cloud
) -> None:
    """Nobody asked for the version of the listing."""
    cloud.store.put("bkt", "d/x", b"first")
    cloud.fault(Fault.replace_object(b"second", operation=GET))
    with virtual_time():
        assert cp("gs://bkt/d/*", "down/", literal=False, settings=Settings(endpoint=cloud.url)).ok
    assert files(here / "down") == {"x": b"second"}


def test_memory_does_not_grow_with_the_number_of_items(here: Path, cloud: Cloud) -> None:
    """The plan goes no further ahead than the queue is long."""
    for number in range(300):
        cloud.store.put("bkt", f"d/{number:03}", b"x")
    recorder = Recorder()
    ahead: list[int] = []

    def watch(event: TransferEvent) -> None:
        recorder(event)
        if isinstance(event, Planned):
            ahead.append(event.items - len(recorder.outcomes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet_module, "_QUEUED", 10)
        assert cp(
            "gs://bkt/d", "down", recursive=True, parallel=4, settings=Settings(endpoint=cloud.url), on_event=watch
        ).ok
    assert max(ahead) <= 10 + 4 + 2
