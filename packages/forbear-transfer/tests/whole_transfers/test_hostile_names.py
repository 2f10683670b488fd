"""Hostile names: whatever objects and files are called, nothing is written beyond the target, and the rest is done."""

import os
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.campaign.plain import OLDER, names, put
from forbear_transfer.functions import cp, rsync
from forbear_transfer.items import Summary
from forbear_transfer.progress import Finished, Started, TransferEvent
from forbear_transfer.storage.client import Settings

LEADING_OUT = [
    "../evil",
    "a/../../evil",
    "..",
    "a/..",
    "/evil",
    "//evil",
    "a//evil",
    "a/./evil",
    "./evil",
    "a/b/../../../../evil",
]


def copied(cloud: Cloud, source: str, target: str) -> Summary:
    """Copy all there is."""
    return cp(source, target, recursive=True, settings=Settings(endpoint=cloud.url))


def everything(folder: Path) -> list[str]:
    """All that is below a folder."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


@pytest.mark.parametrize("command", ["cp", "rsync"])
def test_objects_whose_names_lead_out(cloud: Cloud, tmp_path: Path, command: str) -> None:
    """Each is refused by name, and all others are there."""
    for number, name in enumerate(LEADING_OUT):
        put(cloud, b"evil", f"p/{name}")
        put(cloud, b"good", f"p/good-{number}")
    target = tmp_path / "below" / "target"
    target.mkdir(parents=True)
    settings = Settings(endpoint=cloud.url)
    if command == "cp":
        summary = cp("gs://bkt/p", str(target), recursive=True, settings=settings)
    else:
        summary = rsync("gs://bkt/p", str(target), recursive=True, settings=settings)
    refused = {str(outcome.item.source).partition("#")[0] for outcome in summary.failures}
    assert refused == {f"gs://bkt/p/{name}" for name in LEADING_OUT}
    assert all(outcome.error and outcome.hint for outcome in summary.failures)
    there = everything(tmp_path)
    assert [name for name in there if "evil" in name] == []
    assert sum("good" in name for name in there) == len(LEADING_OUT)


@pytest.mark.parametrize("name", ["p/..", "p/.", "p/../.."])
def test_an_object_named_like_a_folder(cloud: Cloud, tmp_path: Path, name: str) -> None:
    """Copied by itself into a folder, it is refused, too; to a file name of one's choice it can be copied."""
    put(cloud, b"data", name)
    target = tmp_path / "below" / "target"
    target.mkdir(parents=True)
    settings = Settings(endpoint=cloud.url)
    assert cp(f"gs://bkt/{name}", f"{target}/", settings=settings).failed == 1
    assert everything(tmp_path) == ["below", "below/target"]
    assert cp(f"gs://bkt/{name}", str(target / "file"), settings=settings).ok
    assert (target / "file").read_bytes() == b"data"


def test_links_in_the_target_that_lead_out(cloud: Cloud, tmp_path: Path) -> None:
    """Neither a linked folder nor a linked file is written through, when it leads out of the target."""
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (outside / "file").write_bytes(OLDER)
    (target / "linked").symlink_to(outside)
    (target / "file").symlink_to(outside / "file")
    (target / "new").symlink_to(outside / "new")
    (target / "deep").mkdir()
    (target / "deep" / "up").symlink_to("../../outside")
    for name in ("linked/evil", "linked/a/evil", "file", "new", "deep/up/evil", "deep/good", "good"):
        put(cloud, b"data", f"p/{name}")
    summary = rsync("gs://bkt/p", str(target), recursive=True, settings=Settings(endpoint=cloud.url))
    assert sorted(str(outcome.item.source) for outcome in summary.failures) == sorted(
        f"gs://bkt/p/{name}" for name in ("linked/evil", "linked/a/evil", "file", "new", "deep/up/evil")
    )
    assert everything(outside) == ["file"]
    assert (outside / "file").read_bytes() == OLDER
    assert (target / "good").read_bytes() == (target / "deep" / "good").read_bytes() == b"data"


def test_a_folder_that_becomes_a_link_meanwhile(cloud: Cloud, tmp_path: Path) -> None:
    """That it was right for one file does not make it right for the next."""
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    for number in range(20):
        put(cloud, b"data", f"p/sub/{number:02}")

    def swap(event: TransferEvent) -> None:
        if isinstance(event, Finished) and not (target / "sub").is_symlink():
            (target / "sub").rename(tmp_path / "moved")
            (target / "sub").symlink_to(outside)

    there = Settings(endpoint=cloud.url)
    summary = cp("gs://bkt/p", str(target), recursive=True, settings=there, on_event=swap, parallel=1)
    assert (summary.done, summary.failed) == (1, 19)
    assert everything(outside) == []


def test_a_folder_that_is_in_the_way(cloud: Cloud, tmp_path: Path) -> None:
    """A file where a folder must be, and a folder where a file must be, are failures of these objects only."""
    target = tmp_path / "target"
    (target / "folder").mkdir(parents=True)
    (target / "file").write_bytes(OLDER)
    for name in ("folder", "file/below", "good"):
        put(cloud, b"data", f"p/{name}")
    summary = rsync("gs://bkt/p", str(target), recursive=True, settings=Settings(endpoint=cloud.url))
    assert sorted(str(outcome.item.source) for outcome in summary.failures) == [
        "gs://bkt/p/file/below",
        "gs://bkt/p/folder",
    ]
    assert (target / "file").read_bytes() == OLDER
    assert (target / "good").read_bytes() == b"data"


def test_deleting_does_not_leave_the_target(cloud: Cloud, tmp_path: Path) -> None:
    """rsync -d does not follow links: what they lead to stays."""
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (outside / "file").write_bytes(OLDER)
    (target / "linked").symlink_to(outside)
    (target / "extra").write_bytes(b"extra")
    put(cloud, b"data", "p/good")
    rsync("gs://bkt/p", str(target), recursive=True, delete=True, settings=Settings(endpoint=cloud.url))
    assert everything(outside) == ["file"]
    assert not (target / "extra").exists()
    assert (target / "good").read_bytes() == b"data"


def test_files_whose_names_no_object_can_have(cloud: Cloud, tmp_path: Path) -> None:
    """A name with a line end, or that is not Unicode, is a failure with a cure; other strange ones come back."""
    folder = tmp_path / "source"
    folder.mkdir()
    strange = ["a b", "#1", "why?", "50%", "50%2F", "ünï", "日本", "*", "[a]", "back\\slash", "tab\t", "-", "~", "'"]
    for name in strange:
        (folder / name).write_bytes(name.encode())
    (folder / "line\nend").write_bytes(b"evil")
    (folder / "carriage\rreturn").write_bytes(b"evil")
    Path(os.fsdecode(os.fsencode(folder) + b"/not-\xff-unicode")).write_bytes(b"evil")
    summary = copied(cloud, str(folder), "gs://bkt")
    assert summary.failed == 3
    assert all(outcome.error and outcome.hint for outcome in summary.failures)
    stored = {name: cloud.store.object("bkt", f"source/{name}").data for name in strange}
    assert stored == {name: name.encode() for name in strange}
    assert copied(cloud, "gs://bkt/source", str(tmp_path / "back")).ok
    assert names(tmp_path / "back") == sorted(strange)


def test_what_is_neither_file_nor_folder(cloud: Cloud, tmp_path: Path) -> None:
    """Pipes and links to nothing stop nobody; folders that contain themselves have an end."""
    folder = tmp_path / "source"
    (folder / "below").mkdir(parents=True)
    (folder / "good").write_bytes(b"data")
    os.mkfifo(folder / "pipe")
    (folder / "nothing").symlink_to("nowhere")
    (folder / "below" / "again").symlink_to("..")
    summary = copied(cloud, str(folder), "gs://bkt")
    assert cloud.store.object("bkt", "source/good").data == b"data"
    assert cloud.effects.count() < 50
    assert summary.done >= 1


def test_a_source_that_vanishes_from_a_plan(cloud: Cloud, tmp_path: Path) -> None:
    """One file that is gone by the time it is its turn is one failure."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(5):
        (folder / f"file-{number}").write_bytes(b"data")

    def remove(event: TransferEvent) -> None:
        if isinstance(event, Started) and str(event.item.source).endswith("file-3"):
            Path(str(event.item.source)).unlink()

    summary = cp(str(folder), "gs://bkt", recursive=True, on_event=remove, settings=Settings(endpoint=cloud.url))
    assert (summary.done, summary.failed) == (4, 1)
    assert summary.failures[0].hint is not None
