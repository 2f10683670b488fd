"""Transfers survive SIGKILL: the same command again goes on where the bytes are, and ends with one right generation.

Killed are real processes, at random moments by the bytes that went over the line; `make soak` does it fifty times.
"""

from pathlib import Path
from random import Random

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.campaign.killed import Killed, moments
from forbear_testkit.transfer.campaign.line import Line
from forbear_testkit.transfer.campaign.trial import rewrites_in_steps

MIB = 1024 * 1024
OLDER = b"what was there before"


def bytes_of(seed: int, size: int) -> bytes:
    """So many bytes, no two mebibytes of them the same."""
    piece = Random(seed).randbytes(MIB)
    return b"".join(number.to_bytes(8, "big") + piece[8:] for number in range(size // MIB))


def upload_killed(cloud: Cloud, folder: Path, *, seed: int, size: int, kills: int) -> Killed:
    """An upload that is killed so many times, and then done."""
    data, dice = bytes_of(seed, size), Random(seed)
    source = folder / "source"
    source.write_bytes(data)
    older = cloud.store.put("bkt", "target", OLDER).generation
    with Line(cloud.url, held=256 * 1024) as line:
        upload = Killed(line, "up", str(source), "gs://bkt/target", folder / "state", size, 8 * MIB)
        for count in moments(dice, size, kills):
            upload.kill_after(count)
            assert cloud.store.object("bkt", "target").generation == older
        generation = upload.finish()
    item = cloud.store.object("bkt", "target")
    assert (item.generation, item.data == data) == (generation, True)
    assert cloud.effects.count("storage.objects.insert") == 1
    assert cloud.requests.count("storage.objects.insert.start") <= 2 + kills  # of which one finds the older object
    assert list((folder / "state").iterdir()) == []
    assert max(upload.factor, cloud.requests.received() / size) < 1.2
    return upload


def download_killed(cloud: Cloud, folder: Path, *, seed: int, size: int, kills: int, slices: int) -> Killed:
    """A download that is killed so many times, and then done."""
    data, dice = bytes_of(seed, size), Random(seed)
    target = folder / "out" / "target"
    target.parent.mkdir()
    target.write_bytes(OLDER)
    made = cloud.store.put("bkt", "source", data).generation
    with Line(cloud.url, held=256 * 1024) as line:
        download = Killed(line, "down", "gs://bkt/source", str(target), folder / "state", size, slices)
        for count in moments(dice, size, kills):
            download.kill_after(count)
            assert target.read_bytes() == OLDER
        assert download.finish() == made
    assert target.read_bytes() == data
    assert [each.name for each in target.parent.iterdir()] == ["target"]
    assert list((folder / "state").iterdir()) == []
    assert download.factor < 1.2
    return download


def test_an_upload_killed_twice(cloud: Cloud, tmp_path: Path) -> None:
    """It is sent hardly more than once, and made once."""
    upload_killed(cloud, tmp_path, seed=1, size=48 * MIB, kills=2)


def test_a_download_killed_once(cloud: Cloud, tmp_path: Path) -> None:
    """It comes hardly more than once, and the older file is there until all is."""
    download_killed(cloud, tmp_path, seed=2, size=48 * MIB, kills=1, slices=1)


def test_a_finished_upload_is_not_repeated_after_a_kill(cloud: Cloud, tmp_path: Path) -> None:
    """The final response never arrives: the next run sees the object there, and makes no other."""
    size = 16 * MIB
    source = tmp_path / "source"
    source.write_bytes(bytes_of(3, size))
    with Line(cloud.url, held=256 * 1024) as line:
        upload = Killed(line, "up", str(source), "gs://bkt/target", tmp_path / "state", size, 8 * MIB)
        upload.kill_after(1_000, "down")  # after the responses to the start and to the first chunk
        made = [each.generation for each in cloud.effects]
        assert len(made) == 1
        assert [upload.finish()] == made
    assert cloud.effects.count() == 1
    assert cloud.requests.received() < 1.01 * size


@pytest.mark.soak
def test_a_copy_killed_twice(cloud: Cloud, tmp_path: Path) -> None:
    """A rewrite of many calls goes on with its token."""
    size, older = 96 * MIB, cloud.store.put("bkt", "target", OLDER).generation
    cloud.store.put("bkt", "source", bytes_of(4, size))
    with rewrites_in_steps(), Line(cloud.url) as line:
        copy = Killed(line, "copy", "gs://bkt/source", "gs://bkt/target", tmp_path / "state", size, 0)
        for count in (8_000, 12_000):
            copy.kill_after(count, "up")
            assert cloud.store.object("bkt", "target").generation == older
        assert copy.finish() == cloud.effects[0].generation
    assert cloud.store.object("bkt", "target").data == bytes_of(4, size)
    assert cloud.effects.count() == 1
    assert cloud.requests.count("storage.objects.rewrite") <= 96 + 2 + 1  # one a kill, and one finds the older object
    assert list((tmp_path / "state").iterdir()) == []


def keep_nothing(*_: object) -> None:
    """Keep nothing of a chunk that breaks off, as a careless cloud may."""


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 16))
def test_uploads_killed_thirty_times(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Six uploads, each killed five times; half of them to a cloud that keeps nothing of a chunk that breaks off."""
    if seed % 2:
        monkeypatch.setattr("forbear_cloud.api.resumable.keep_part", keep_nothing)
    assert upload_killed(cloud, tmp_path, seed=seed, size=256 * MIB, kills=5).kills == 5


@pytest.mark.soak
@pytest.mark.parametrize(("seed", "slices"), [(20, 1), (21, 1), (22, 4), (23, 4)])
def test_downloads_killed_twenty_times(cloud: Cloud, tmp_path: Path, seed: int, slices: int) -> None:
    """Four downloads, each killed five times: two in one piece, two in slices."""
    assert download_killed(cloud, tmp_path, seed=seed, size=256 * MIB, kills=5, slices=slices).kills == 5
