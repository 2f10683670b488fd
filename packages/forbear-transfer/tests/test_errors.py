"""Errors of local files name the path that must be changed: the file itself, or the folder that is to blame."""

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.uploads import MIB, storing
from forbear_transfer import Settings, Summary, TransferError, cp
from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.target import TargetPath
from forbear_transfer.objects import Url
from forbear_transfer.workers.local import remove

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the modes of folders")

_NOBODY = 65534
RO, SHUT = 0o500, 0o000


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder to work in, as a user whom modes hinder: with a file, folders that may not be used, and a lost link."""
    folder = Path(tempfile.mkdtemp())
    monkeypatch.chdir(folder)
    user = os.geteuid()
    if user == 0:
        os.chown(folder, _NOBODY, -1)
        os.seteuid(_NOBODY)
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(folder / "states"))
    try:
        for name in ("a", "ro", "shut", "full"):
            (folder / name).mkdir()
        for name in ("a/b", "closed", "ro/extra", "shut/f", "full/read-only"):
            (folder / name).write_bytes(b"data")
        (folder / "lost").symlink_to("nowhere")
        (folder / "closed").chmod(0)
        (folder / "full/read-only").write_bytes(b"")
        (folder / "full/read-only").chmod(0o400)
        (folder / "ro").chmod(RO)
        (folder / "shut").chmod(SHUT)
        yield folder
    finally:
        os.seteuid(user)
        for name in ("ro", "shut"):
            (folder / name).chmod(0o700)
        shutil.rmtree(folder)


def failure(summary: Summary) -> str | None:
    """Return the message for the only one that failed."""
    [outcome] = summary.failures
    return outcome.error


@pytest.mark.parametrize("size", [10, 9 * MIB])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("a/b/c/f", "cannot make the folder a/b/c: Not a directory: a/b is no folder"),
        ("a/b/f", "cannot make the folder a/b: File exists: a/b is no folder"),
        ("lost/f", "cannot make the folder lost: File exists: lost is no folder"),
        ("ro/f", "cannot write ro/f: Permission denied: the folder ro may not be written to"),
        ("ro/x/y/f", "cannot make the folder ro/x/y: Permission denied: the folder ro may not be written to"),
        ("shut/f", "cannot write shut/f: Permission denied: the folder shut may not be entered"),
        ("shut/x/f", "cannot make the folder shut/x: Permission denied: the folder shut may not be entered"),
    ],
)
def test_errors_of_downloads_blame_the_right_path(here: Path, cloud: Cloud, target: str, said: str, size: int) -> None:
    """Small or large, below any depth of folders."""
    cloud.store.put("bkt", "o", b"x" * size)
    assert failure(cp("gs://bkt/o", target, settings=Settings(endpoint=cloud.url))) == said
    assert sorted(each.name for each in here.iterdir() if each.name != "states") == [
        "a", "closed", "full", "lost", "ro", "shut",
    ]  # fmt: skip


async def test_a_folder_that_is_missing_is_named(here: Path, cloud: Cloud) -> None:
    """The first one, where none is made."""
    cloud.store.put("bkt", "o", b"x")
    async with storing(cloud) as storage:
        with pytest.raises(TransferError) as caught:
            await download(storage, Url("bkt", "o"), "full/x/y/f")
    assert str(caught.value) == "cannot write full/x/y/f: No such file or directory: there is no folder full/x"


def test_a_part_that_cannot_be_used_is_named(here: Path, cloud: Cloud) -> None:
    """Only its deletion mends that."""
    cloud.store.put("bkt", "o", b"x" * 9 * MIB)
    with TargetPath.of("full/f") as place:
        part = here / "full" / place.resumable_part_name(cloud.url, "gs://bkt/o")
    part.touch(0)
    said = failure(cp("gs://bkt/o", "full/f", settings=Settings(endpoint=cloud.url)))
    assert said == f"cannot write full/{part.name}: Permission denied"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("closed", "cannot read 'closed': Permission denied"),
        ("shut/f", "Permission denied: the folder shut may not be entered"),
        ("shut/*", "Permission denied: the folder shut may not be entered"),
        ("s*/*", "cannot list shut: Permission denied"),
        ("s*t/**", "cannot list shut: Permission denied"),
        ("a/b/c", "a/b/c does not exist"),
        ("a/b/*", "nothing matches a/b/*"),
    ],
)
def test_errors_of_uploads_blame_the_right_path(here: Path, cloud: Cloud, source: str, said: str) -> None:
    """A folder that cannot be looked into is not called missing."""
    assert failure(cp(source, "gs://bkt/x/", settings=Settings(endpoint=cloud.url))) == said


def test_a_pattern_copies_what_can_be_listed(here: Path, cloud: Cloud) -> None:
    """A folder that could not be looked into is a failure of its own."""
    summary = cp("**/b", "gs://bkt/x/", settings=Settings(endpoint=cloud.url))
    assert (summary.done, failure(summary)) == (1, "cannot list ./shut: Permission denied")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("ro/m", "ro/m: Permission denied: the folder ro may not be written to"),
        ("full/read-only", "full/read-only: Permission denied"),
        ("x/y/m", "x/y/m: No such file or directory: there is no folder x"),
        ("a/b/m", "a/b/m: Not a directory: a/b is no folder"),
    ],
)
def test_errors_of_manifests_blame_the_file(here: Path, cloud: Cloud, manifest: str, said: str) -> None:
    """A file that may not be written to is to blame itself."""
    with pytest.raises(TransferError) as caught:
        cp("a/b", "gs://bkt/x", settings=Settings(endpoint=cloud.url), manifest=manifest)
    assert str(caught.value) == f"cannot write the manifest {said}"


@pytest.mark.parametrize("root", [None, "ro"])
def test_errors_of_deletions_blame_the_folder(here: Path, root: str | None) -> None:
    """The folder of what is to be deleted is to blame."""
    with pytest.raises(TransferError) as caught:
        remove("ro/extra", root)
    assert str(caught.value) == "cannot delete ro/extra: Permission denied: the folder ro may not be written to"


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("ro/x/states", "Permission denied: the folder ro may not be written to"),
        ("a/b/states", "Not a directory: a/b is no folder"),
        ("ro", "Permission denied"),
    ],
)
def test_warnings_about_states_blame_the_folder(here: Path, cloud: Cloud, folder: str, said: str) -> None:
    """The warning names the folder above that is to blame."""
    with pytest.warns(RuntimeWarning) as caught:
        assert cp("full", "gs://bkt/x", recursive=True, settings=Settings(endpoint=cloud.url), state=folder).done == 1
    assert str(caught[0].message).startswith(f"cannot keep the state of the transfer in {folder}: {said}; it goes on")


def test_only_os_errors_blame_a_folder(here: Path) -> None:
    """A name that no file can have is to blame itself."""
    with pytest.raises(TransferError, match=r"cannot write 'a/b\\x00/c': .*null"):
        TargetPath.of("a/b\0/c")
