"""Transfers where no state can be kept: they go on, say so once, and leave nothing that nobody could continue."""

import os
import warnings
from pathlib import Path

import pytest

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.downloads import names
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Settings, Storage, TransferError, acp, cp

MIB = 1024 * 1024
NOWHERE = "/dev/null/states"


@pytest.mark.parametrize("size", [10, 9 * MIB])
def test_it_goes_on_and_says_so_once(tmp_path: Path, cloud: Cloud, size: int) -> None:
    """Up, within the cloud and down: several large files, or a small one whose folder must be remembered."""
    folder = tmp_path / "dir"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}").write_bytes(b"%d" % number * size)
    settings = Settings(endpoint=cloud.url)
    down = tmp_path / "down"
    for source, target in ((folder, "gs://bkt/x"), ("gs://bkt/x", "gs://bkt/y"), ("gs://bkt/y", down)):
        heard = Recorder()
        summary = cp(source, target, recursive=True, settings=settings, on_event=heard, state=NOWHERE)
        assert (summary.done, summary.failed) == (3, 0)
        texts = [text.partition(";")[0] for text in heard.warnings]
        assert texts == [
            "cannot keep the state of the transfer in /dev/null/states: Not a directory: /dev/null is no folder"
        ]
    assert sorted(each.name for each in down.iterdir()) == ["0", "1", "2"]
    assert len(cloud.effects) == 6


def test_without_a_listener_it_is_a_warning(tmp_path: Path, cloud: Cloud) -> None:
    """Of Python."""
    (tmp_path / "file").write_bytes(b"data")
    with pytest.warns(RuntimeWarning, match="cannot keep the state"):
        assert cp(tmp_path, "gs://bkt/x", recursive=True, settings=Settings(endpoint=cloud.url), state=NOWHERE).ok


async def test_what_nobody_can_continue_is_not_left(tmp_path: Path, cloud: Cloud) -> None:
    """A large download that fails deletes its part, and an upload cancels its session."""
    cloud.store.put("bkt", "big", os.urandom(9 * MIB))
    (tmp_path / "source").write_bytes(os.urandom(9 * MIB))
    policy = cloud_storage.policy.with_attempts(1)
    cloud.fault(Fault.truncate(4 * MIB, operation="storage.objects.get", times=None))
    cloud.fault(Fault.status(503, operation="storage.objects.insert.send", times=None))
    with virtual_time(seed=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        async with Storage(endpoint=cloud.url, policy=policy) as storage:
            down = await acp(storage, "gs://bkt/big", tmp_path / "big", state=NOWHERE)
            up = await acp(storage, tmp_path / "source", "gs://bkt/new", state=NOWHERE)
    assert (down.failed, up.failed) == (1, 1)
    assert names(tmp_path) == ["source"]
    assert cloud.requests.count("storage.objects.insert.cancel") == 1


def test_a_folder_that_is_not_safe_stays_an_error(tmp_path: Path, cloud: Cloud) -> None:
    """Somebody else could put another's session there."""
    states = tmp_path / "states"
    states.mkdir()
    states.chmod(0o777)
    (tmp_path / "file").write_bytes(b"data")
    with pytest.raises(TransferError, match="others may write to it"):
        cp(tmp_path / "file", "gs://bkt/x", recursive=True, settings=Settings(endpoint=cloud.url), state=states)
    assert len(cloud.effects) == 0
