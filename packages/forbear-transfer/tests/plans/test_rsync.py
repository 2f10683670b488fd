"""rsync: only what differs moves, and nothing is deleted before that."""

import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import INSERT, contents, files, make, moved, synced
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Action, Settings, Status, TransferError, cp
from forbear_transfer.plans.comparer import side_by_side

READS = {"storage.objects.list", "storage.objects.get"}


def test_what_somebody_else_makes_meanwhile_stays(here: Path, cloud: Cloud) -> None:
    """It is not written over unseen, and the next run compares it."""
    make(here, "dir/a")
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, times=1))
    [failure] = synced(cloud, "dir", "gs://bkt/x").failures
    assert failure.hint == "another program made it: run it again"
    assert contents(cloud) == {"x/a": b"theirs"}
    assert synced(cloud, "dir", "gs://bkt/x").ok
    assert contents(cloud) == {"x/a": b"dir/a"}


def test_up_across_and_down_only_what_differs_moves(here: Path, cloud: Cloud) -> None:
    """The second time there is nothing to do, the third only what has changed."""
    make(here, "dir/a", "dir/b-", "dir/b/c", "dir/b/d")
    ways = [("dir", "gs://bkt/up"), ("gs://bkt/up", "gs://bkt/across/"), ("gs://bkt/across", "down")]
    for source, target in ways:
        assert moved(synced(cloud, source, target)) == (4, 0, 0, 0)
        assert moved(synced(cloud, source, target)) == (0, 0, 0, 0)
    assert files(here / "down") == files(here / "dir")
    (here / "dir" / "b" / "c").write_text("longer than before")
    make(here, "dir/b.new")
    for source, target in ways:
        assert moved(synced(cloud, source, target)) == (2, 0, 0, 0)
    assert files(here / "down") == files(here / "dir")


def test_without_recursion_only_what_is_right_there_counts(here: Path, cloud: Cloud) -> None:
    """And only that is deleted. One line says which folders of the source are left out, unless `exclude` names them."""
    make(here, "dir/a", "dir/sub/b", "down/other/c")
    for name in ("x/old", "x/sub/old", "x/two/old"):
        cloud.store.put("bkt", name, b"")
    recorder = Recorder()
    asked: dict[str, Any] = {"recursive": False, "delete": True, "on_event": recorder}
    assert moved(synced(cloud, "dir", "gs://bkt/x", **asked)) == (2, 1, 1, 0)
    assert recorder.said(Status.SKIPPED) == {"dir": "its subfolder sub/: include them with `recursive`"}
    assert contents(cloud).keys() == {"x/a", "x/sub/old", "x/two/old"}
    assert moved(synced(cloud, "gs://bkt/x", "down", **asked)) == (1, 0, 1, 0)
    said = recorder.said(Status.SKIPPED)["gs://bkt/x"]
    assert said == "its 2 subfolders, such as sub/: include them with `recursive`"
    assert moved(synced(cloud, "dir", "gs://bkt/x", **asked, exclude="sub")) == (0, 0, 0, 0)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_link_through_a_file_is_a_link_to_nothing(here: Path, cloud: Cloud, direction: str) -> None:
    """It fails neither the listing of the source nor that of the target."""
    make(here, "dir/a")
    (here / "dir" / "link").symlink_to("a/b")
    cloud.store.put("bkt", "x/a", b"dir/a")
    if direction == "up":
        assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (0, 0, 1, 0)
    else:
        assert moved(synced(cloud, "gs://bkt/x", "dir", delete=True)) == (0, 0, 0, 0)
        assert (here / "dir" / "link").is_symlink()


def test_a_file_of_the_same_size_is_told_by_its_time_or_its_checksum(here: Path, cloud: Cloud) -> None:
    """The time, where the object has one; with `checksum`, or without such a time, the bytes."""
    make(here, "dir/a")
    os.utime(here / "dir" / "a", (1e9, 1e9))
    synced(cloud, "dir", "gs://bkt/x")
    (here / "dir" / "a").write_text("other")
    os.utime(here / "dir" / "a", (1e9 + 0.5, 1e9 + 0.5))
    assert synced(cloud, "dir", "gs://bkt/x").done == 0  # in whole seconds it is the same
    assert synced(cloud, "dir", "gs://bkt/x", checksum=True).done == 1
    cloud.store.put("bkt", "x/a", b"other")  # by somebody who notes no times
    assert synced(cloud, "dir", "gs://bkt/x").done == 0
    cloud.store.put("bkt", "x/a", b"third")
    assert synced(cloud, "dir", "gs://bkt/x").done == 1
    assert contents(cloud) == {"x/a": b"other"}


def test_what_is_excluded_is_neither_copied_nor_deleted(here: Path, cloud: Cloud) -> None:
    """By the name below the folder, from its beginning."""
    make(here, "dir/a", "dir/skip/b", "dir/c.log")
    for name in ("x/skip/old", "x/old.log", "x/old"):
        cloud.store.put("bkt", name, b"")
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True, exclude=r"skip/|.*\.log$")) == (2, 1, 0, 0)
    assert contents(cloud).keys() == {"x/a", "x/skip/old", "x/old.log"}


def test_a_dry_run_writes_nothing(here: Path, cloud: Cloud) -> None:
    """It says what would be done, by requests that only read."""
    make(here, "dir/a", "dir/b", "down/extra")
    for name in ("x/b", "x/extra"):
        cloud.store.put("bkt", name, b"dir/b")
    for source, target in (("dir", "gs://bkt/x"), ("gs://bkt/x", "gs://bkt/y"), ("gs://bkt/x", "down")):
        recorder = Recorder()
        summary = synced(cloud, source, target, delete=True, dry_run=True, on_event=recorder)
        assert (summary.done, summary.failed) == (0, 0)
        assert {one.error for one in recorder.outcomes} <= {"would copy", "would delete"}
        assert recorder.outcomes
    assert {one.operation for one in cloud.requests} <= READS
    assert len(cloud.effects) == 0
    assert files(here / "down") == {"extra": b"down/extra"}


def test_links_to_folders_have_their_place_among_the_names(here: Path, cloud: Cloud) -> None:
    """Which is that of a file: else a listing would be out of order, and nothing could be mirrored for good."""
    make(here, "up/loop.txt", "down/sub.txt", "elsewhere/mine")
    (here / "up" / "loop").symlink_to(here / "up")
    (here / "down" / "sub").symlink_to(here / "elsewhere")
    assert moved(synced(cloud, "up", "gs://bkt/x", delete=True)) == (1, 0, 1, 0)
    assert moved(synced(cloud, "gs://bkt/x", "down", delete=True)) == (2, 1, 0, 0)
    assert (here / "elsewhere" / "mine").exists()


def test_nothing_is_written_through_a_link_within_the_target(here: Path, cloud: Cloud) -> None:
    """It would land on a file that has another name, too, and is deleted, or has been compared, by that one."""
    make(here, "dir/real/a", "dir/b")
    (here / "dir" / "link").symlink_to("real")
    (here / "dir" / "to-b").symlink_to("b")
    (here / "dir" / "to-c").symlink_to("c")
    before = files(here / "dir")
    for name in ("link/a", "to-b", "to-c"):
        cloud.store.put("bkt", f"x/{name}", b"another")
    assert moved(synced(cloud, "gs://bkt/x", "dir", delete=True)) == (0, 0, 1, 3)
    assert files(here / "dir") == before


def test_states_of_transfers_are_left_out(here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold addresses by which anybody may go on with an upload, and belong to what is under way just now."""
    make(here, "home/state/secret", "home/state.txt")
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(here / "home" / "state"))
    assert moved(synced(cloud, "home", "gs://bkt/home")) == (1, 0, 1, 0)
    assert moved(synced(cloud, "gs://bkt/home", "home", delete=True)) == (0, 0, 0, 0)
    assert (here / "home" / "state" / "secret").exists()


def test_states_in_a_folder_of_ones_choice_are_left_out(here: Path, cloud: Cloud) -> None:
    """Also as the folder of this run alone."""
    make(here, "home/state/secret", "home/state.txt")
    (here / "home" / "state").chmod(0o700)
    assert moved(synced(cloud, "home", "gs://bkt/home", state="home/state")) == (1, 0, 1, 0)
    assert moved(synced(cloud, "gs://bkt/home", "home", delete=True, state="home/state")) == (0, 0, 0, 0)
    assert (here / "home" / "state" / "secret").exists()
    for source in ("home", "home/**"):
        cp(source, "gs://bkt/x/", recursive=True, state="home/state", settings=Settings(endpoint=cloud.url))
    assert contents(cloud).keys() == {"home/state.txt", "x/home/state.txt", "x/state.txt"}


@pytest.mark.parametrize("noted", ["nan", "inf", "-inf", "1e300", "yesterday"])
def test_a_time_that_is_none_does_not_count(here: Path, cloud: Cloud, noted: str) -> None:
    """Anybody may write any text there; then the checksum tells."""
    make(here, "dir/a", "dir/b")
    for name, data in (("a", (here / "dir" / "a").read_bytes()), ("b", b"other")):
        cloud.store.put("bkt", f"x/{name}", data, {"metadata": {"goog-reserved-file-mtime": noted}})
    assert moved(synced(cloud, "gs://bkt/x", "dir")) == (1, 0, 0, 0)
    assert (here / "dir" / "b").read_bytes() == b"other"


@pytest.mark.parametrize("checksum", [False, True])
def test_the_same_contents_under_another_time_get_that_time(here: Path, cloud: Cloud, checksum: bool) -> None:
    """Nothing is sent again, up or down, and other metadata stays; the next run has nothing to do."""
    make(here, "dir/a")
    fields = {"metadata": {"own": "stays", "goog-reserved-file-mtime": "1000000000"}, "contentType": "text/plain"}
    there = cloud.store.put("bkt", "x/a", b"dir/a", fields)  # type: ignore[arg-type]
    os.utime(here / "dir" / "a", (2e9, 2e9))
    summary = synced(cloud, "dir", "gs://bkt/x", checksum=checksum)
    assert (moved(summary), summary.bytes) == ((1, 0, 0, 0), 0)
    assert cloud.effects.count(INSERT) == 0
    assert there.fields["metadata"] == {"own": "stays", "goog-reserved-file-mtime": "2000000000"}
    assert synced(cloud, "gs://bkt/x", "down").done == 1
    assert (here / "down" / "a").stat().st_mtime == 2e9
    os.utime(here / "down" / "a", (1e9, 1e9))
    summary = synced(cloud, "gs://bkt/x", "down", checksum=checksum)
    assert (moved(summary), summary.bytes) == ((1, 0, 0, 0), 0)
    assert (here / "down" / "a").stat().st_mtime == 2e9
    for source, target in (("dir", "gs://bkt/x"), ("gs://bkt/x", "down")):
        assert synced(cloud, source, target, checksum=True).done == 0


def test_the_time_of_an_object_that_changes_meanwhile_is_left_alone(here: Path, cloud: Cloud) -> None:
    """The new version is not given the time of other contents."""
    make(here, "dir/a")
    synced(cloud, "dir", "gs://bkt/x")
    os.utime(here / "dir" / "a", (2e9, 2e9))
    cloud.fault(Fault.replace_object(b"theirs", operation="storage.objects.patch", times=1))
    [failure] = synced(cloud, "dir", "gs://bkt/x").failures
    assert failure.hint == "run it again"
    assert contents(cloud) == {"x/a": b"theirs"}


def test_objects_that_can_be_no_file_fail_and_nothing_is_deleted(here: Path, cloud: Cloud) -> None:
    """The others arrive."""
    make(here, "down/extra")
    for name in ("../up", "a//b", "ok", "f", "f/below", "folder/"):
        cloud.store.put("bkt", f"x/{name}", b"x")
    summary = synced(cloud, "gs://bkt/x", "down", delete=True)
    assert moved(summary) == (2, 0, 1, 3)
    assert files(here) == {"down/ok": b"x", "down/f": b"x", "down/extra": b"down/extra"}


def test_what_stands_for_a_folder_stays_and_goes_along_within_the_cloud(here: Path, cloud: Cloud) -> None:
    """Here a folder needs nothing that stands for it."""
    make(here, "dir/sub/a")
    cloud.store.put("bkt", "x/sub/", b"")
    assert moved(synced(cloud, "dir", "gs://bkt/x", delete=True)) == (1, 0, 0, 0)
    assert moved(synced(cloud, "gs://bkt/x", "gs://bkt/y")) == (2, 0, 0, 0)
    assert contents(cloud).keys() == {"x/sub/", "x/sub/a", "y/sub/", "y/sub/a"}


def test_compressed_objects_are_told_by_their_time(here: Path, cloud: Cloud) -> None:
    """Their size and checksum are those of the compressed form."""
    fields: dict[str, object] = {"contentEncoding": "gzip", "metadata": {"goog-reserved-file-mtime": "1000000000"}}
    cloud.store.put("bkt", "x/a", gzip.compress(b"plain"), fields)  # type: ignore[arg-type]
    assert synced(cloud, "gs://bkt/x", "down").done == 1
    assert files(here / "down") == {"a": b"plain"}
    assert synced(cloud, "gs://bkt/x", "down").done == 0


def test_a_manifest_notes_what_was_done_but_decides_nothing(here: Path, cloud: Cloud) -> None:
    """Differing files are copied, even if the manifest says that they were done before."""
    make(here, "dir/a")
    manifest = here / "m.csv"
    assert synced(cloud, "dir", "gs://bkt/x", manifest=manifest).done == 1
    (here / "dir" / "a").write_text("longer than before")
    assert synced(cloud, "dir", "gs://bkt/x", manifest=manifest).done == 1
    assert len(manifest.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("a", "b", "got a and b; on this machine alone, use the rsync of the system"),
        ("", "gs://bkt", "must each name a folder"),
        ("gs://bkt/a", "gs://bkt/a/b", "must not lie in each other"),
        ("gs://bkt/a/b", "gs://bkt/a/", "must not lie in each other"),
        ("gs://bkt", "gs://bkt/a", "must not lie in each other"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_whole(source: str, target: str, says: str, cloud: Cloud) -> None:
    """Before anything is asked or done."""
    with pytest.raises(ValueError, match=says):
        synced(cloud, source, target)
    assert len(cloud.requests) == 0


def test_folders_whose_names_begin_alike_do_not_lie_in_each_other(here: Path, cloud: Cloud) -> None:
    """A name is whole only with its slash."""
    cloud.store.put("bkt", "ab/x", b"")
    assert moved(synced(cloud, "gs://bkt/ab", "gs://bkt/a")) == (1, 0, 0, 0)


async def listing(names: list[str]) -> AsyncIterator[tuple[str, str]]:
    """Names, as a listing yields them."""
    for name in names:
        yield name, name


@given(st.dictionaries(st.text("ab/-.é😀\uffff", min_size=1, max_size=4), st.sampled_from(["left", "right", "both"])))
async def test_two_listings_side_by_side_find_what_sets_would(sides: dict[str, str]) -> None:
    """Each name comes once, with what either side has."""
    left, right = (sorted(name for name in sides if sides[name] in {side, "both"}) for side in ("left", "right"))
    pairs = [one async for one in side_by_side(listing(left), listing(right))]
    assert [name for name, _, _ in pairs] == sorted(sides)
    assert {name for name, one, _ in pairs if one is None} == {*right} - {*left}
    assert {name for name, _, other in pairs if other is None} == {*left} - {*right}


async def test_a_listing_out_of_order_stops_the_rsync() -> None:
    """A name that seems to be missing might come later, so nothing may be deleted."""
    with pytest.raises(TransferError, match="'a' comes after 'b'"):
        [one async for one in side_by_side(listing([]), listing(["b", "a"]))]


@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c/d", "c/e", "c-", "f"]), st.binary(max_size=2)),
    st.dictionaries(st.sampled_from(["a", "b", "c/d", "c/e", "c-", "g/h"]), st.binary(max_size=2)),
)
def test_afterwards_the_target_has_what_the_source_has(
    here: Path, cloud: Cloud, source: dict[str, bytes], target: dict[str, bytes]
) -> None:
    """Whatever was there: by checksums, with deletion, and the second time there is nothing to do."""
    cloud.reset()
    cloud.store.create_bucket("bkt")
    for name, data in source.items():
        cloud.store.put("bkt", f"x/{name}", data)
    for name, data in target.items():
        cloud.store.put("bkt", f"y/{name}", data)
    summary = synced(cloud, "gs://bkt/x", "gs://bkt/y", delete=True, checksum=True)
    left = {name[2:]: data for name, data in contents(cloud).items() if name.startswith("y/")}
    if source:
        assert summary.ok
        assert left == source
        assert synced(cloud, "gs://bkt/x", "gs://bkt/y", delete=True).done == 0
    else:
        assert left == target


def test_copies_are_planned_as_items_with_the_version_they_replace(here: Path, cloud: Cloud) -> None:
    """0 where there is nothing."""
    make(here, "dir/a", "dir/b")
    there = cloud.store.put("bkt", "x/a", b"old").generation
    recorder = Recorder()
    synced(cloud, "dir", "gs://bkt/x", on_event=recorder)
    assert {(item.source, item.action, item.generation) for item in recorder.begun} == {
        ("dir/a", Action.COPY, there),
        ("dir/b", Action.COPY, 0),
    }
