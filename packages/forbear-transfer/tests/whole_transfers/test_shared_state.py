"""Others at the same transfer, states that are not what they were, clocks that jump: nothing is mixed or lost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit import ROOT
from forbear_testkit.transfer.campaign.plain import DATA, OLDER, SIZE, adown, aup, broken_off, down, names, put, run, up
from forbear_testkit.transfer.campaign.plans import CHUNK, GET, INSERT
from forbear_testkit.transfer.recorder import Receiver
from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.target import PartFile, TargetPath
from forbear_transfer.errors import Locked, TargetChanged, TransferError
from forbear_transfer.functions import rsync
from forbear_transfer.objects import MTIME, Object, Url
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.storage.client import Settings, Storage

MIB = 1024 * 1024
LIVES = 120 * 365 * 86_400.0

# Two at once


async def both(*works: Awaitable[Object]) -> list[Object | BaseException]:
    """Do them side by side, and return what came of each."""
    return await asyncio.gather(*works, return_exceptions=True)


def test_two_uploads_of_one_file_do_not_mix(cloud: Cloud, tmp_path: Path) -> None:
    """One process uploads the file, and the other fails because it is in use."""
    source = tmp_path / "source"
    source.write_bytes(DATA)
    ends = run(both(aup(cloud.url, source, tmp_path), aup(cloud.url, source, tmp_path)))
    (refused,) = (end for end in ends if isinstance(end, Exception))
    assert isinstance(refused, Locked)
    assert refused.hint is not None
    assert cloud.effects.count(INSERT) == 1
    assert cloud.store.object("bkt", "target").data == DATA
    assert names(tmp_path / "state") == []


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("size", [CHUNK // 2, SIZE], ids=["small", "large"])
def test_two_uploads_of_two_files_to_one_object(cloud: Cloud, tmp_path: Path, size: int, older: bool) -> None:
    """Each is done in whole, one after the other, or told that the other was."""
    if older:
        cloud.store.put("bkt", "target", OLDER)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(DATA[:size])
    second.write_bytes(DATA[:size][::-1])
    ends = run(both(aup(cloud.url, first, tmp_path), aup(cloud.url, second, tmp_path)))
    failures = [end for end in ends if isinstance(end, Exception)]
    assert all(isinstance(failure, TargetChanged) for failure in failures)
    assert cloud.effects.count(INSERT) == 2 - len(failures)
    assert len(failures) < 2
    assert cloud.store.object("bkt", "target").data in (first.read_bytes(), second.read_bytes())
    assert names(tmp_path / "state") == []


def test_two_downloads_to_one_file_do_not_mix(cloud: Cloud, tmp_path: Path) -> None:
    """One process downloads a large object, and the other fails because it is in use."""
    put(cloud)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "file"
    ends = run(both(adown(cloud.url, target, tmp_path), adown(cloud.url, target, tmp_path)))
    assert sorted(type(end).__name__ for end in ends) == ["Locked", "Object"]
    assert target.read_bytes() == DATA
    assert names(tmp_path / "out") == ["file"]
    assert names(tmp_path / "state") == []


def test_two_downloads_to_one_file_with_their_states_elsewhere(cloud: Cloud, tmp_path: Path) -> None:
    """On two machines, say: the second one must not empty the part file under the hands of the first."""
    data = os.urandom(10 * MIB)
    put(cloud, data, "big")

    class Other(Receiver):
        """Begins the second download once the first one has come halfway."""

        def __init__(self) -> None:
            self.bytes = 0
            self.end: BaseException | None = None

        def moved(self, count: int) -> None:
            self.bytes += count
            if self.end is None and self.bytes > len(data) // 2:
                with (
                    pytest.raises(Locked) as caught,
                    PartFile.resumable(TargetPath.of(target), cloud.url, str(Url("bkt", "big"))),
                ):
                    pass
                self.end = caught.value

    async def first() -> Object:
        current_progress.set(Progress(other))
        async with Storage(endpoint=cloud.url) as storage:
            return await download(storage, Url("bkt", "big"), target, state=tmp_path / "state")

    target, other = tmp_path / "target", Other()
    run(first())
    assert isinstance(other.end, Locked)
    assert target.read_bytes() == data
    assert names(tmp_path) == ["state", "target"]


@pytest.mark.parametrize("size", [20_000, SIZE], ids=["small", "large"])
def test_two_downloads_of_two_objects_to_one_file(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The file is one of them in whole, and nothing is left of the other."""
    put(cloud, DATA[:size])
    put(cloud, DATA[:size][::-1], "other")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "file"
    other = Url("bkt", "other")
    ends = run(both(adown(cloud.url, target, tmp_path), adown(cloud.url, target, tmp_path, other)))
    assert not any(isinstance(end, Exception) for end in ends)
    assert target.read_bytes() in (DATA[:size], DATA[:size][::-1])
    assert names(tmp_path / "out") == ["file"]
    assert names(tmp_path / "state") == []


def arrived(path: Path) -> bool:
    """Return whether that is a part with all the bytes before the stall."""
    return path.name.startswith(".file") and path.stat().st_size == 9 * MIB


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_hung_process_holds_its_transfer_until_it_dies(cloud: Cloud, tmp_path: Path, direction: str) -> None:
    """While it lives, another process fails because the file is in use; after that, the next one continues."""
    source, target = tmp_path / "source", tmp_path / "file"
    source.write_bytes(DATA * 8)
    put(cloud, DATA * 8)
    cloud.fault(Fault.stall(operation=f"{INSERT}.send", skip=3), Fault.stall(9 * MIB, operation=GET, path="alt=media"))
    place = [str(source), "gs://bkt/target"] if direction == "up" else ["gs://bkt/source", str(target)]
    command = [sys.executable, "-m", "forbear_testkit.transfer.campaign.victim", direction, cloud.url, *place]
    size = CHUNK if direction == "up" else 1
    with subprocess.Popen([*command, str(tmp_path / "state"), str(size)], cwd=ROOT) as process:
        while cloud.pending_faults == 2 or (direction == "down" and not any(map(arrived, tmp_path.iterdir()))):
            threading.Event().wait(0.01)
        begin = partial(up, cloud.url, source) if direction == "up" else partial(down, cloud.url, target)
        with pytest.raises(Locked):
            begin(tmp_path)
        process.send_signal(signal.SIGKILL)
    cloud.clear_faults()
    before = len(cloud.requests)
    begin(tmp_path)
    if direction == "up":
        assert cloud.store.object("bkt", "target").data == DATA * 8
        assert cloud.requests.count(f"{INSERT}.start") == 1
    else:
        assert target.read_bytes() == DATA * 8
        assert any("range" in request.headers for request in list(cloud.requests)[before:])
    assert names(tmp_path / "state") == []


# States


def spoiled(path: Path, how: str) -> None:
    """Do something to a state file."""
    saved = json.loads(path.read_bytes())
    match how:
        case "empty":
            path.write_bytes(b"")
        case "garbage":
            path.write_bytes(b"\x00\xff" * 1000)
        case "cut off":
            path.write_bytes(path.read_bytes()[:-9])
        case "of another version":
            path.write_text(json.dumps({**saved, "version": 99}))
        case "a list":
            path.write_text("[1, 2, 3]")
        case "without values":
            path.write_text(json.dumps({**saved, "values": {}}))
        case "with other keys":
            path.write_text(json.dumps({**saved, "values": {"what": "ever"}}))
        case "with other types":
            path.write_text(json.dumps({**saved, "values": dict.fromkeys(saved["values"], 7)}))
        case "with nulls":
            path.write_text(json.dumps({**saved, "values": dict.fromkeys(saved["values"])}))
        case "deeply nested":
            path.write_text("[" * 100_000)
        case "gone":
            path.unlink()
        case _:
            raise ValueError(how)


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize(
    "how",
    [
        "empty", "garbage", "cut off", "of another version", "a list", "without values", "with other keys",
        "with other types", "with nulls", "deeply nested", "gone",
    ],
)  # fmt: skip
def test_a_spoiled_state_starts_the_transfer_anew(cloud: Cloud, tmp_path: Path, direction: str, how: str) -> None:
    """A state that cannot be used is ignored, and the transfer starts anew."""
    source, target = tmp_path / "source", tmp_path / "out" / "file"
    source.write_bytes(DATA)
    target.parent.mkdir()
    put(cloud)
    begin = transfer_of(cloud, tmp_path, direction)
    broken_off(cloud, begin)
    (state,) = (tmp_path / "state").glob("*.json")
    assert state.stat().st_mode & 0o777 == 0o600
    spoiled(state, how)
    begin()
    if direction == "up":
        assert cloud.store.object("bkt", "target").data == DATA
        assert cloud.effects.count(INSERT) == 1
    else:
        assert target.read_bytes() == DATA
        assert names(target.parent) == ["file"]
    assert names(tmp_path / "state") == []


def transfer_of(cloud: Cloud, folder: Path, direction: str) -> Callable[[], object]:
    """An upload of `source` or a download to `out/file`."""
    if direction == "up":
        return lambda: up(cloud.url, folder / "source", folder)
    return lambda: down(cloud.url, folder / "out" / "file", folder)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_links_among_the_states_are_not_followed(cloud: Cloud, tmp_path: Path, direction: str) -> None:
    """If a link lies where a state is to be written, its target is not touched."""
    (tmp_path / "source").write_bytes(DATA)
    (tmp_path / "out").mkdir()
    put(cloud)
    precious = tmp_path / "precious"
    precious.write_bytes(OLDER)
    begin = transfer_of(cloud, tmp_path, direction)
    broken_off(cloud, begin)
    (state,) = (tmp_path / "state").glob("*.json")
    state.unlink()
    state.symlink_to(precious)
    state.with_suffix(".new").symlink_to(precious)
    begin()
    assert precious.read_bytes() == OLDER


def test_a_state_folder_that_is_a_file(cloud: Cloud, tmp_path: Path) -> None:
    """It is said, and what to do; the transfer goes on without."""
    (tmp_path / "state").write_bytes(OLDER)
    (tmp_path / "source").write_bytes(DATA)
    with pytest.warns(RuntimeWarning, match=r"state of the transfer in .*state: File exists; .* FORBEAR_STATE_DIR"):
        up(cloud.url, tmp_path / "source", tmp_path)
    assert cloud.effects.count() == 1
    assert (tmp_path / "state").read_bytes() == OLDER


# Parts


def flipped(part: Path) -> None:
    """One byte of what has come is another."""
    data = bytearray(part.read_bytes())
    data[1000] ^= 1
    part.write_bytes(data)


def longer(part: Path) -> None:
    """There is more than there can be."""
    part.write_bytes(part.read_bytes() + bytes(SIZE))


def shorter(part: Path) -> None:
    """There is hardly anything left."""
    os.truncate(part, 5)


@pytest.mark.parametrize("change", [flipped, longer, shorter, Path.unlink])
def test_a_part_that_changed_is_not_used(cloud: Cloud, tmp_path: Path, change: Callable[[Path], None]) -> None:
    """The bytes of a part are checked again before they count as right."""
    put(cloud)
    target = tmp_path / "out" / "file"
    target.parent.mkdir()
    broken_off(cloud, lambda: down(cloud.url, target, tmp_path))
    (part,) = target.parent.iterdir()
    assert part.stat().st_mode & 0o777 == 0o600
    change(part)
    down(cloud.url, target, tmp_path)
    assert target.read_bytes() == DATA
    assert names(target.parent) == ["file"]
    assert names(tmp_path / "state") == []


@pytest.mark.parametrize("kind", ["a link", "a folder"])
def test_parts_that_are_no_files(cloud: Cloud, tmp_path: Path, kind: str) -> None:
    """A link in the place of a part is not followed, and a folder is no part: that is said."""
    put(cloud)
    precious = tmp_path / "precious"
    precious.write_bytes(OLDER)
    target = tmp_path / "out" / "file"
    target.parent.mkdir()
    broken_off(cloud, lambda: down(cloud.url, target, tmp_path))
    (part,) = target.parent.iterdir()
    part.unlink()
    if kind == "a link":
        part.symlink_to(precious)
    else:
        part.mkdir()
    with pytest.raises(TransferError):
        down(cloud.url, target, tmp_path)
    assert precious.read_bytes() == OLDER
    assert not target.exists()


# Clocks


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("jump", [-LIVES / 3, LIVES])
def test_clocks_that_jump(cloud: Cloud, tmp_path: Path, direction: str, jump: float) -> None:
    """Between two runs a clock may be set: what was begun goes on all the same."""
    source, target = tmp_path / "source", tmp_path / "out" / "file"
    source.write_bytes(DATA)
    target.parent.mkdir()
    put(cloud)
    begin = transfer_of(cloud, tmp_path, direction)
    broken_off(cloud, begin)
    real = time.time
    with patch("time.time", lambda: real() + jump):
        begin()
    if direction == "up":
        assert cloud.store.object("bkt", "target").data == DATA
        assert cloud.requests.count(f"{INSERT}.start") == 1
    else:
        assert target.read_bytes() == DATA
        assert any("range" in request.headers for request in cloud.requests)
    assert names(tmp_path / "state") == []


@pytest.mark.parametrize("when", [-LIVES / 2, 0, 253_402_300_800.0])
def test_files_of_other_times(cloud: Cloud, tmp_path: Path, when: float) -> None:
    """The time of a file is kept, however long ago it was, or is to come."""
    here, back = tmp_path / "here", tmp_path / "back"
    here.mkdir()
    (here / "file").write_bytes(b"data")
    os.utime(here / "file", (when, when))
    settings = Settings(endpoint=cloud.url)
    assert rsync(str(here), "gs://bkt", settings=settings).ok
    assert rsync("gs://bkt", str(back), settings=settings).ok
    assert (back / "file").stat().st_mtime == (here / "file").stat().st_mtime


@pytest.mark.parametrize("text", ["", "soon", "1e30", "-1e30", "9" * 30, "nan", "inf", "1.5"])
def test_times_that_are_none(cloud: Cloud, tmp_path: Path, text: str) -> None:
    """Whatever metadata says of the time, the bytes come."""
    put(cloud, metadata={MTIME: text})
    down(cloud.url, tmp_path / "file", tmp_path)
    assert (tmp_path / "file").read_bytes() == DATA
