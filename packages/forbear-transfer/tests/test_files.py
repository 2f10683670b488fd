"""States, locks and parts are used only where they are this user's own, and files stay below their folder."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, names, put, random_bytes
from forbear_transfer.downloads.target import TargetPath
from forbear_transfer.errors import Locked, TargetExists, TransferError, UnsafeName
from forbear_transfer.files import OpenFolder, folder_below
from forbear_transfer.functions import cp
from forbear_transfer.items import Status
from forbear_transfer.state import State
from forbear_transfer.storage.client import Settings
from forbear_transfer.workers.local import remove

LARGE = 9 * MIB
KEY = ("upload", "http://x", "gs://b/o", "/f")
by_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others"
)


def state_file(folder: Path, suffix: str = ".json") -> Path:
    """Return the path of the state of KEY."""
    with State(folder, *KEY) as state:
        state.save({"mine": 1})
    (path,) = folder.glob("*.json")
    return path.with_suffix(suffix)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (0o700, None),
        (0o755, None),
        (0o1777, None),
        (0o1770, None),
        (0o777, "others may write"),
        (0o770, "others may write"),
        (0o702, "others may write"),
    ],
)
def test_whose_folder_states_are_kept_in(tmp_path: Path, mode: int, text: str | None) -> None:
    """In one where others may replace files they are not; a sticky one, such as /tmp, is fine."""
    folder = tmp_path / "states"
    folder.mkdir()
    folder.chmod(mode)
    if text is None:
        assert state_file(folder).exists()
        return
    with pytest.raises(TransferError, match=text) as caught:
        State(folder, *KEY).__enter__()
    assert "chmod go-w" in str(caught.value.hint)
    assert names(folder) == []


def test_folders_that_are_missing_are_made_private(tmp_path: Path) -> None:
    """All of them, whatever the user's mask allows for other files."""
    mask = os.umask(0)
    try:
        state_file(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(mask)
    for folder in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@by_root
def test_the_folder_of_another_user_keeps_no_state(tmp_path: Path) -> None:
    """Its owner could replace what is in it."""
    folder = tmp_path / "states"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(TransferError, match="belongs to another user"):
        State(folder, *KEY).__enter__()


@by_root
def test_the_state_of_another_user_is_no_state(tmp_path: Path) -> None:
    """Somebody has put it there: it is not read, and replaced."""
    path = state_file(tmp_path)
    os.chown(path, 65534, 65534)
    with State(tmp_path, *KEY) as state:
        assert state.load() == {}
        state.save({"mine": 2})
        assert state.load() == {"mine": 2}
    assert path.stat().st_uid == 0


def test_a_state_with_another_name_is_no_state(tmp_path: Path) -> None:
    """It may be any file of this user's."""
    path = state_file(tmp_path)
    (tmp_path / "other").hardlink_to(path)
    with State(tmp_path, *KEY) as state:
        assert state.load() == {}
        state.save({"mine": 2})
        assert state.load() == {"mine": 2}
    assert "2" not in (tmp_path / "other").read_text()


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """No file is made where it leads."""
    folder = tmp_path / "states"
    state_file(folder, ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(TransferError, match="it is a symbolic link"):
        State(folder, *KEY).__enter__()
    assert not (tmp_path / "made").exists()


def test_a_lock_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    """And nobody waits for its other end."""
    os.mkfifo(state_file(tmp_path, ".lock"))
    with pytest.raises(TransferError, match="it is not a regular file"):
        State(tmp_path, *KEY).__enter__()


@by_root
def test_the_lock_of_another_user_is_refused(tmp_path: Path) -> None:
    """They could hold it for ever."""
    lock = state_file(tmp_path, ".lock")
    lock.touch()
    os.chown(lock, 65534, 65534)
    with pytest.raises(TransferError, match="it belongs to another user"):
        State(tmp_path, *KEY).__enter__()


def test_a_lock_with_another_name_is_made_anew(tmp_path: Path) -> None:
    """Unless somebody holds it: then it is held."""
    lock = state_file(tmp_path, ".lock")
    lock.touch()
    (tmp_path / "other").hardlink_to(lock)
    with State(tmp_path, *KEY):
        assert not lock.samefile(tmp_path / "other")
        (tmp_path / "third").hardlink_to(lock)
        with pytest.raises(Locked):
            State(tmp_path, *KEY).__enter__()


def part_of(cloud: Cloud, target: Path) -> Path:
    """Return the path of the part of a large download."""
    with TargetPath.of(target) as place:
        return target.parent / place.resumable_part_name(cloud.url, str(URL))


async def test_a_part_that_is_another_file_too_is_not_written_to(cloud: Cloud, tmp_path: Path) -> None:
    """It loses that name, and keeps its bytes."""
    data = random_bytes(LARGE)
    put(cloud, data)
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    part_of(cloud, tmp_path / "file").hardlink_to(precious)
    await fetched(cloud, tmp_path / "file")
    assert (precious.read_bytes(), (tmp_path / "file").read_bytes()) == (b"precious", data)
    assert names(tmp_path) == ["file", "precious"]


@pytest.mark.parametrize("kind", ["link", "pipe"])
async def test_a_part_that_is_no_file_is_refused(cloud: Cloud, tmp_path: Path, kind: str) -> None:
    """Nothing is written to where it leads."""
    put(cloud, random_bytes(LARGE))
    part = part_of(cloud, tmp_path / "file")
    if kind == "link":
        part.symlink_to(tmp_path / "made")
    else:
        os.mkfifo(part)
    with pytest.raises(TransferError, match=r"it is (a symbolic link|not a regular file)"):
        await fetched(cloud, tmp_path / "file")
    assert names(tmp_path) == [part.name]


@by_root
async def test_the_part_of_another_user_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    """Who made it could read what is written to it, and change it later."""
    put(cloud, random_bytes(LARGE))
    part = part_of(cloud, tmp_path / "file")
    part.touch(mode=0o666)
    os.chown(part, 65534, 65534)
    with pytest.raises(TransferError, match="it belongs to another user"):
        await fetched(cloud, tmp_path / "file")
    assert part.stat().st_size == 0
    assert names(tmp_path) == [part.name]


KILLED_AT_UNLINK = """
import os, signal, sys
from forbear_transfer import Settings, cp

unlink = os.unlink

def killed(path, *, dir_fd=None):
    if str(path).endswith(".forbear"):
        os.kill(os.getpid(), signal.SIGKILL)
    unlink(path, dir_fd=dir_fd)

os.unlink = killed
cp(sys.argv[2], sys.argv[3], no_clobber=True, settings=Settings(endpoint=sys.argv[1]))
"""


def killed_between_two_names(cloud: Cloud, target: Path) -> None:
    """Have a process die after it has given its part the name of the target, and before it has taken the other away."""
    command = [sys.executable, "-c", KILLED_AT_UNLINK, cloud.url, str(URL), str(target)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert target.samefile(part_of(cloud, target))


async def test_killed_between_the_two_names_of_a_file(cloud: Cloud, tmp_path: Path) -> None:
    """A file that is there and its part are one; the next download replaces the file, and never writes to it in place.

    Who reads the file while that goes on has the old bytes to their end. With -n it stays, and is whole.
    """
    first, second = random_bytes(LARGE), random_bytes(LARGE)
    put(cloud, first)
    target = tmp_path / "file"
    await asyncio.to_thread(killed_between_two_names, cloud, target)
    with pytest.raises(TargetExists):
        await fetched(cloud, target, no_clobber=True)
    put(cloud, second)
    seen = list[bytes]()
    with target.open("rb") as reader:
        await fetched(cloud, target, count=Count(5 * MIB, lambda: seen.append(target.read_bytes())))
        assert reader.read() == first
    assert seen == [first]
    assert target.read_bytes() == second
    assert names(tmp_path) == ["file"]


def swapped(folder: Path, outside: Path) -> None:
    """Put a link to `outside` in the place of a folder."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(outside)


@pytest.mark.parametrize("size", [10, LARGE])
async def test_a_folder_that_becomes_a_link_meanwhile(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The file goes to where its download began, not to where the path leads at its end."""
    data = random_bytes(size)
    put(cloud, data)
    folder, outside = tmp_path / "target" / "folder", tmp_path / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    count = Count(1, lambda: swapped(folder, outside))
    await fetched(cloud, folder / "file", count=count, root=tmp_path / "target")
    assert names(outside) == []
    assert (tmp_path / "target" / "moved" / "file").read_bytes() == data
    assert names(tmp_path / "target" / "moved") == ["file"]


@pytest.mark.parametrize("link", ["folder", "file"])
async def test_a_link_that_leads_out_is_refused_whenever_it_was_made(cloud: Cloud, tmp_path: Path, link: str) -> None:
    """Also where it was not there when the folders were made."""
    put(cloud, b"evil")
    target, outside = tmp_path / "target", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(b"precious")
    (target / link).symlink_to(outside / "file" if link == "file" else outside)
    path = target / "file" if link == "file" else target / "folder" / "file"
    with pytest.raises(UnsafeName, match="leads out of the target"):
        await fetched(cloud, path, root=target)
    assert (outside / "file").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("path", "lies"),
    [("root", True), ("root/a", True), ("root/in", True), ("root/in/deep", True), ("root/./a", True), ("rooted", False),
     ("root/..", False), ("root/../rooted", False), ("root/out", False), ("root/out/a", False)],
)  # fmt: skip
@pytest.mark.parametrize("relative", [True, False])
def test_what_lies_below_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, lies: bool, relative: bool
) -> None:
    """By what is there, not by how it is written; a link that stays below it is fine."""
    for name in ("root/a/deep", "rooted/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root" / "in").symlink_to("a")
    (tmp_path / "root" / "out").symlink_to("../rooted")
    monkeypatch.chdir(tmp_path)
    root, below = ("root", path) if relative else (str(tmp_path / "root"), str(tmp_path / path))
    if not lies:
        with pytest.raises(UnsafeName):
            folder_below(root, below)
        return
    with folder_below(root, below) as folder, OpenFolder(below) as same:
        assert os.path.samestat(folder.status(), same.status())


def test_nothing_is_deleted_through_a_link(tmp_path: Path) -> None:
    """A folder of the target that leads elsewhere by now keeps what is there."""
    target, outside = tmp_path / "target", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    (outside / "file").touch()
    (target / "folder").symlink_to(outside)
    with pytest.raises(UnsafeName):
        remove(str(target / "folder" / "file"), str(target))
    assert names(outside) == ["file"]


def test_files_that_are_linked_are_no_reason_to_fail(cloud: Cloud, tmp_path: Path) -> None:
    """A target with several names is replaced, and the others keep the older bytes."""
    put(cloud, b"new")
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "other").hardlink_to(tmp_path / "file")
    summary = cp(str(URL), tmp_path / "file", settings=Settings(endpoint=cloud.url))
    assert summary.ok
    assert not [each for each in summary.failures if each.status is Status.FAILED]
    assert ((tmp_path / "file").read_bytes(), (tmp_path / "other").read_bytes()) == (b"new", b"old")


async def test_systems_that_open_no_folders(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There paths are all that there is, and what can be checked by them is."""
    monkeypatch.setattr("forbear_transfer.files._BY_DESCRIPTOR", False)
    data, outside = random_bytes(LARGE), tmp_path / "outside"
    put(cloud, data)
    (tmp_path / "target").mkdir()
    outside.mkdir()
    for clobber in (False, True):
        await fetched(cloud, tmp_path / "target" / "file", no_clobber=not clobber, root=tmp_path / "target")
    assert (tmp_path / "target" / "file").read_bytes() == data
    assert names(tmp_path / "target") == ["file"]
    (tmp_path / "target" / "link").symlink_to(outside)
    with pytest.raises(UnsafeName):
        await fetched(cloud, tmp_path / "target" / "link" / "file", root=tmp_path / "target")
    assert names(outside) == []
    assert state_file(tmp_path / "states").exists()
