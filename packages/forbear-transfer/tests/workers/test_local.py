"""The permissions of files: kept in both directions, in the metadata of gsutil and gcloud, and set by rsync alone."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import make, moved, synced
from forbear_transfer import Settings, Storage, Url, cp, download, rsync, upload
from forbear_transfer.downloads.target import TargetPath
from forbear_transfer.errors import TransferError
from forbear_transfer.files import FileIdentity, OpenFolder, check_listed
from forbear_transfer.objects import MODE, MTIME
from forbear_transfer.workers.local import Folders, touch

NOTHING = (0, 0, 0, 0)
TOUCHED = (1, 0, 0, 0)


def mode_of(path: Path) -> int:
    """Return the permissions of a file."""
    return path.stat().st_mode & 0o7777


def stored(cloud: Cloud, name: str) -> dict[str, str]:
    """Return the custom metadata of an object."""
    values: Any = cloud.store.object("bkt", name).fields.get("metadata", {})
    return dict(values)


@pytest.mark.parametrize("mode", [0o400, 0o640, 0o755, 0o4711])
@pytest.mark.parametrize("size", [3, 9 * 1024 * 1024])
def test_permissions_go_there_and_back(here: Path, cloud: Cloud, mode: int, size: int) -> None:
    """As three octal digits, beside the time; other bits of the mode are not kept."""
    settings = Settings(endpoint=cloud.url)
    (here / "f").write_bytes(bytes(size))
    os.utime("f", (1_600_000_000, 1_600_000_000))
    Path("f").chmod(mode)
    assert cp("f", "gs://bkt/", preserve_posix=True, settings=settings).ok
    assert stored(cloud, "f") == {MODE: f"{mode & 0o777:03o}", MTIME: "1600000000"}
    (here / "there").write_bytes(b"other")
    for target in ("there", "new"):
        assert cp("gs://bkt/f", target, preserve_posix=True, settings=settings).ok
        assert (mode_of(here / target), (here / target).stat().st_mtime) == (mode & 0o777, 1_600_000_000)


def test_without_the_option_permissions_stay(here: Path, cloud: Cloud) -> None:
    """Those of a replaced file do, and a new one has those of the umask; so it is for a mode that is none."""
    settings = Settings(endpoint=cloud.url)
    cloud.store.put("bkt", "f", b"1", {"metadata": {MODE: "700"}})
    for name, text in (("odd", "rwx"), ("long", "100644"), ("eight", "888"), ("set", "4755"), ("none", None)):
        cloud.store.put("bkt", name, b"1", {"metadata": {} if text is None else {MODE: text}})
        make(here, name)
        Path(name).chmod(0o604)
        assert cp(f"gs://bkt/{name}", name, preserve_posix=True, settings=settings).ok
        assert mode_of(here / name) == 0o604
    make(here, "f")
    Path("f").chmod(0o604)
    assert cp("gs://bkt/f", "f", settings=settings).ok
    assert mode_of(here / "f") == 0o604


async def test_single_files_have_them_too(here: Path, cloud: Cloud) -> None:
    """`upload` and `download` take the option, also for an address whose metadata are not known yet."""
    make(here, "f")
    (here / "f").chmod(0o601)
    async with Storage(endpoint=cloud.url) as storage:
        await upload(storage, "f", Url("bkt", "f"), preserve_posix=True)
        await download(storage, Url("bkt", "f"), "back", preserve_posix=True)
    assert mode_of(here / "back") == 0o601


@pytest.mark.parametrize("downloads", [True, False], ids=["down", "up"])
@pytest.mark.parametrize("fault", [None, Fault.reset(when="after", method="PATCH")], ids=["well", "lost"])
def test_rsync_sets_permissions_alone(here: Path, cloud: Cloud, downloads: bool, fault: Fault | None) -> None:
    """No bytes are sent again; a second run does nothing, and one without the option never looks at them."""
    make(here, "t/f", "t/g")
    for name in ("f", "g"):
        Path(f"t/{name}").chmod(0o640)
    assert synced(cloud, "t", "gs://bkt/t", preserve_posix=True).done == 2
    source, target = ("gs://bkt/t", "t") if downloads else ("t", "gs://bkt/t")
    Path("t/f").chmod(0o755)
    assert moved(synced(cloud, source, target)) == NOTHING
    if fault is not None:
        cloud.fault(fault)
    assert moved(synced(cloud, source, target, preserve_posix=True)) == TOUCHED
    cloud.clear_faults()
    assert moved(synced(cloud, source, target, preserve_posix=True)) == NOTHING
    assert mode_of(here / "t/f") == (0o640 if downloads else 0o755)
    assert stored(cloud, "t/f")[MODE] == ("640" if downloads else "755")


@pytest.mark.parametrize("downloads", [True, False], ids=["down", "up"])
def test_rsync_sets_both_at_once(here: Path, cloud: Cloud, downloads: bool) -> None:
    """If time and permissions differ, one item sets them; objects without a mode get one, and files keep theirs."""
    make(here, "t/f")
    assert synced(cloud, "t", "gs://bkt/t").done == 1
    os.utime("t/f", (5, 5))
    Path("t/f").chmod(0o705)
    source, target = ("gs://bkt/t", "t") if downloads else ("t", "gs://bkt/t")
    assert moved(synced(cloud, source, target, preserve_posix=True)) == TOUCHED
    assert moved(synced(cloud, source, target, preserve_posix=True)) == NOTHING
    assert mode_of(here / "t/f") == 0o705
    assert stored(cloud, "t/f").get(MODE) == (None if downloads else "705")
    assert (stored(cloud, "t/f")[MTIME] == "5") != downloads


def test_the_mode_of_a_link_is_not_set(here: Path) -> None:
    """Nor that of the file to which it leads."""
    make(here, "t/f")
    Path("t/f").chmod(0o600)
    Path("t/link").symlink_to("f")
    with pytest.raises(Exception, match="cannot set the time or mode of t/link"):
        touch("t/link", "t", None, mode=0o777)
    assert mode_of(here / "t/f") == 0o600


def test_a_link_made_after_the_check_is_not_followed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder stays the one that was checked; a link that has its name by then leads nowhere."""
    make(here, "t/d/f", "elsewhere/f")
    os.utime("elsewhere/f", (5, 5))

    def swap(path: str, status: os.stat_result | None, listed: FileIdentity | None, otherwise: str) -> None:
        check_listed(path, status, listed, otherwise)
        Path("t/d").rename("t/moved")
        Path("t/d").symlink_to(here / "elsewhere")

    monkeypatch.setattr("forbear_transfer.workers.local.check_listed", swap)
    touch("t/d/f", "t", 7.0, mode=0o600)
    assert (here / "elsewhere/f").stat().st_mtime == 5
    assert ((here / "t/moved/f").stat().st_mtime, mode_of(here / "t/moved/f")) == (7, 0o600)


def test_the_mode_of_a_file_that_nobody_may_read_is_set(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may, and that of a link stays, too."""
    make(here, "f", "g")
    Path("link").symlink_to("g")
    before = mode_of(here / "g")

    def refuse(folder: OpenFolder, name: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(OpenFolder, "open", refuse)
    for mode in (0o200, 0o640):
        touch("f", None, None, mode=mode)
        assert mode_of(here / "f") == mode
    with pytest.raises(TransferError, match="cannot set the time or mode of link"):
        touch("link", None, None, mode=0o777)
    assert mode_of(here / "g") == before


@pytest.mark.parametrize(
    ("source", "target"), [("gs://bkt/a", "gs://bkt/b/"), ("-", "gs://bkt/b"), ("gs://bkt/a", "-")]
)
def test_there_must_be_a_file(source: Any, target: str) -> None:
    """Copies within the cloud keep all metadata, and a stream has no permissions."""
    functions = (cp,) if "-" in (source, target) else (cp, rsync)
    for function in functions:
        with pytest.raises(ValueError, match="`preserve_posix` is for files to and from the cloud, got"):
            function(source, target, preserve_posix=True)


@pytest.mark.parametrize(
    ("names", "may_have_parts"),
    [((), False), (("a", "b"), False), (("a", ".a.0123456789ab.forbear"), True), (tuple(map(str, range(1001))), True)],
    ids=["empty", "files", "a part", "many files"],
)
def test_a_folder_is_looked_at_once(tmp_path: Path, names: tuple[str, ...], may_have_parts: bool) -> None:
    """It may have parts of downloads if it has one, or too many files to look at all of them."""
    for name in names:
        (tmp_path / name).touch()
    folders = Folders()
    assert folders.prepare(str(tmp_path / "f"), None) is may_have_parts
    (tmp_path / ".f.0123456789ab.forbear").touch()
    assert folders.prepare(str(tmp_path / "g"), None) is may_have_parts
    assert folders.prepare(str(tmp_path / "new" / "f"), str(tmp_path)) is False


@pytest.mark.parametrize("target", ["f", "link"])
def test_a_part_of_a_larger_version_goes(here: Path, cloud: Cloud, target: str) -> None:
    """A small object replaces what an interrupted download of a larger one has left, also where a link leads."""
    (here / "below").mkdir()
    (here / "link").symlink_to("below/f")
    cloud.store.put("bkt", "f", b"small")
    folder = here if target == "f" else here / "below"
    with TargetPath.of(folder / "f") as path:
        part = folder / path.resumable_part_name(cloud.url, "gs://bkt/f")
    part.write_bytes(bytes(100))
    assert cp("gs://bkt/f", target, settings=Settings(endpoint=cloud.url)).ok
    assert (folder / "f").read_bytes() == b"small"
    assert not part.exists()
