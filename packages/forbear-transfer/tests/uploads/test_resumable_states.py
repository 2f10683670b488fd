"""Uploads that another process continues: the session on disk, and when it is not used."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.uploads import (
    CHUNK,
    QUERY,
    SEND,
    TARGET,
    When,
    data_of,
    file_of,
    metered,
    states,
    steps,
    stored,
    storing,
    versions,
)
from forbear_transfer.errors import HttpError, Locked, SourceChanged, TargetChanged
from forbear_transfer.objects import Url
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import WireError

pytestmark = pytest.mark.anyio

SIZE = 8 * CHUNK + 1000
IMPATIENT = cloud_storage.policy.with_attempts(1)


async def interrupted(cloud: Cloud, path: Path, nth: int = 4, **settings: Any) -> None:
    """Begin an upload that fails at a chunk and leaves its state."""
    cloud.fault(Fault.reset(operation=SEND, nth=nth))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(Exception, match=r".") as caught:
            await upload(storage, path, TARGET, chunk_size=CHUNK, **settings)
    assert isinstance(caught.value, WireError)
    assert len(states()) == 1


async def resumed(cloud: Cloud, path: Path, **settings: Any) -> list[str]:
    """Run the upload again; return the operations of its requests."""
    before = cloud.requests.total
    with metered() as told:
        async with storing(cloud) as storage:
            given: dict[str, Any] = {"chunk_size": CHUNK, **settings}
            made = await upload(storage, path, TARGET, **given)
    assert stored(cloud) == path.read_bytes()  # noqa: ASYNC240
    assert made.generation == cloud.store.object("bkt", "thing").generation
    assert told.bytes == made.size
    assert states() == []
    return steps(cloud)[before:]


async def test_the_next_run_goes_on(cloud: Cloud, tmp_path: Path) -> None:
    """The next run begins with a query, and sends only what is missing."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    assert await resumed(cloud, path) == ["query", *["send"] * 6]
    assert versions(cloud) == 1
    assert cloud.requests.received(SEND) < SIZE + 2 * CHUNK


async def test_the_state_is_private(cloud: Cloud, tmp_path: Path) -> None:
    """Only its owner may read a state, because the URL of a session gives access to it."""
    await interrupted(cloud, file_of(tmp_path, SIZE))
    (path,) = states()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "upload_id=" in json.loads(path.read_text())["values"]["session"]


async def test_a_folder_for_states_can_be_named(cloud: Cloud, tmp_path: Path) -> None:
    """The folder `state` is made and used."""
    path, own = file_of(tmp_path, SIZE), tmp_path / "deep" / "states"
    cloud.fault(Fault.reset(operation=SEND, nth=4))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(Exception, match=r"."):
            await upload(storage, path, TARGET, chunk_size=CHUNK, state=own)
        assert len(list(own.iterdir())) == 1
        await upload(storage, path, TARGET, chunk_size=CHUNK, state=own)
        assert list(own.iterdir()) == []
    assert states() == []


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_run_that_died_at_the_end_is_found_done(cloud: Cloud, tmp_path: Path, cut: Any) -> None:
    """If the process died at the last chunk, the next run completes the upload, or finds it complete."""
    path = file_of(tmp_path, SIZE)
    cloud.fault(Fault.reset(when=cut, operation=SEND, nth=9))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(Exception, match=r"."):
            await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert await resumed(cloud, path) == (["query", "storage.objects.get"] if cut == "after" else ["query", "send"])
    assert versions(cloud) == 1


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
async def test_what_is_gone_since_it_was_done_is_done_again(cloud: Cloud, tmp_path: Path, fate: str) -> None:
    """If the object of a complete session was deleted or replaced since, the next run uploads it again."""
    path = file_of(tmp_path, SIZE)
    cloud.fault(Fault.reset(when="after", operation=SEND, nth=9))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(Exception, match=r"."):
            await upload(storage, path, TARGET, chunk_size=CHUNK)
        assert stored(cloud) == path.read_bytes()
        if fate == "replaced":
            cloud.store.put("bkt", "thing", b"other")
        else:
            found = await storage.stat(TARGET)
            assert found is not None
            await storage.delete(found.url)
    assert (await resumed(cloud, path))[:2] == ["query", "storage.objects.get"]


async def test_one_that_was_done_and_forgotten_is_not_done_again(cloud: Cloud, tmp_path: Path) -> None:
    """If a complete session is gone, the precondition of the new one finds the object."""
    path = file_of(tmp_path, SIZE)
    cloud.fault(Fault.reset(when="after", operation=SEND, nth=9))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(Exception, match=r"."):
            await upload(storage, path, TARGET, chunk_size=CHUNK)
    cloud.fault(Fault.expire_session(operation=QUERY))
    assert await resumed(cloud, path) == ["query", "start", "storage.objects.get"]
    assert versions(cloud) == 1


@pytest.mark.parametrize("code", [404, 410])
async def test_a_session_that_is_gone_is_begun_anew(cloud: Cloud, tmp_path: Path, code: int) -> None:
    """If the saved session is gone, the next run begins another one."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    cloud.fault(Fault.expire_session(status=code, operation=QUERY))
    assert await resumed(cloud, path) == ["query", "start", *["send"] * 9]
    assert versions(cloud) == 1


CHANGES: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: path.write_bytes(data_of(SIZE, seed=2)),
    "size": lambda path: path.write_bytes(data_of(SIZE + 1)),
    "time": lambda path: os.utime(path, (5, 5)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_another_file_is_another_upload(cloud: Cloud, tmp_path: Path, change: str) -> None:
    """If the file was changed, its saved session is cancelled and not used."""
    path = file_of(tmp_path, SIZE)
    os.utime(path, (1, 1))
    await interrupted(cloud, path)
    CHANGES[change](path)
    assert (await resumed(cloud, path))[:3] == ["cancel", "start", "send"]
    assert versions(cloud) == 1


@pytest.mark.parametrize("settings", [{"metadata": {"a": "b"}}, {"content_type": "text/x"}, {"generation": 0}])
async def test_another_wish_is_another_upload(cloud: Cloud, tmp_path: Path, settings: dict[str, Any]) -> None:
    """With another metadata or precondition, the saved session is cancelled and not used."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    assert (await resumed(cloud, path, **settings))[:2] == ["cancel", "start"]


async def test_another_chunk_size_is_the_same_upload(cloud: Cloud, tmp_path: Path) -> None:
    """With another chunk size, the saved session continues."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    assert await resumed(cloud, path, chunk_size=3 * CHUNK) == ["query", "send", "send"]


async def test_what_was_put_there_meanwhile_is_not_replaced(cloud: Cloud, tmp_path: Path) -> None:
    """The next run keeps the precondition of the first one."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    cloud.store.put("bkt", "thing", b"theirs", {})
    async with storing(cloud) as storage:
        with pytest.raises(TargetChanged):
            await upload(storage, path, TARGET, chunk_size=CHUNK)
        assert states() == []
        await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 1, "values": {"session": 5}}', "\x00"])
async def test_a_state_that_makes_no_sense_is_none(cloud: Cloud, tmp_path: Path, text: str) -> None:
    """With an invalid state, the upload begins again."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    states()[0].write_text(text)
    assert (await resumed(cloud, path))[0] == "start"


@pytest.mark.parametrize("code", [401, 403])
async def test_what_the_user_can_mend_ends_no_session(cloud: Cloud, tmp_path: Path, code: int) -> None:
    """After an error that other credentials cure, the session continues."""
    path = file_of(tmp_path, SIZE)
    cloud.fault(Fault.status(code, operation=SEND, nth=4))
    async with storing(cloud) as storage:
        with pytest.raises(HttpError) as caught:
            await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert caught.value.hint is not None
    assert (await resumed(cloud, path))[0] == "query"


async def test_two_do_not_do_the_same(cloud: Cloud, tmp_path: Path) -> None:
    """The second upload of a file to the same target raises Locked; one to another target succeeds."""
    path = file_of(tmp_path, SIZE)
    async with storing(cloud) as storage:
        both = await asyncio.gather(
            *(upload(storage, path, TARGET, chunk_size=CHUNK) for _ in range(2)),
            upload(storage, path, Url("bkt", "other"), chunk_size=CHUNK),
            return_exceptions=True,
        )
    assert [type(each).__name__ for each in both] == ["Object", "Locked", "Object"]
    assert isinstance(both[1], Locked)
    assert versions(cloud) == 1
    assert states() == []


async def test_small_files_leave_no_trace(cloud: Cloud, tmp_path: Path) -> None:
    """A small upload makes neither state nor lock nor folder."""
    path = file_of(tmp_path, 100)
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET, state=tmp_path / "states")
    assert os.listdir(tmp_path) == ["source.bin"]  # noqa: PTH208


async def test_where_no_state_can_be_kept_it_goes_on_without(cloud: Cloud, tmp_path: Path) -> None:
    """Without a usable folder for states, the upload succeeds with a warning."""
    path = file_of(tmp_path, SIZE)
    async with storing(cloud) as storage:
        with pytest.warns(RuntimeWarning, match="cannot keep the state of .* FORBEAR_STATE_DIR"):
            await upload(storage, path, TARGET, chunk_size=CHUNK, state=path / "x")
    assert stored(cloud) == data_of(SIZE)
    assert versions(cloud) == 1


async def test_a_session_that_nobody_could_continue_is_cancelled(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the state cannot be saved, the upload continues; if it fails then, its session is cancelled."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = file_of(tmp_path, SIZE)
    monkeypatch.setattr(os, "fsync", full)
    async with storing(cloud, policy=cloud_storage.policy.with_attempts(2)) as storage:
        with pytest.warns(RuntimeWarning, match="No space left"):
            await upload(storage, path, TARGET, chunk_size=CHUNK)
        assert stored(cloud) == data_of(SIZE)
        cloud.fault(Fault.status(503, operation=SEND, times=None))
        cloud.requests.clear()
        with pytest.warns(RuntimeWarning, match="No space left"), pytest.raises(HttpError):
            await upload(storage, path, Url("bkt", "other"), chunk_size=CHUNK)
    assert steps(cloud)[0] == "start"
    assert steps(cloud)[-1] == "cancel"
    assert states() == []


async def test_a_cancelled_upload_goes_on_later(cloud: Cloud, tmp_path: Path) -> None:
    """A cancelled upload ends at once, and its state is kept."""
    path = file_of(tmp_path, SIZE)

    async with storing(cloud) as storage:
        loop = asyncio.get_running_loop()
        with metered(When(3 * CHUNK, lambda: loop.call_soon(task.cancel))):
            task = asyncio.create_task(upload(storage, path, TARGET, chunk_size=CHUNK))
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [each.suffix for each in states()] == [".json"]
    assert "cancel" not in steps(cloud)
    assert "start" not in await resumed(cloud, path)
    assert versions(cloud) == 1


async def test_a_source_that_changes_in_the_second_run(cloud: Cloud, tmp_path: Path) -> None:
    """If the file changes during the resumed upload, the upload fails."""
    path = file_of(tmp_path, SIZE)
    await interrupted(cloud, path)
    with metered(When(6 * CHUNK, lambda: os.utime(path, (9, 9)))):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged):
                await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 0
    assert states() == []


PROGRAM = """
import asyncio, sys
from forbear_transfer.objects import Url
from forbear_transfer.progress import listening
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.upload import upload

total = 0

def told(event):
    global total
    total += event.bytes
    if total >= int(sys.argv[3]):
        print("far enough", flush=True)
        sys.stdin.read()  # blocks the whole process until it is killed

async def main():
    async with Storage(endpoint=sys.argv[1]) as storage:
      with listening(told):
        await upload(storage, sys.argv[2], Url("bkt", "thing"), chunk_size=262144)

asyncio.run(main())
"""


async def test_killed_and_gone_on_with(cloud: Cloud, tmp_path: Path) -> None:
    """After a process was killed, the next one sends at most one chunk again."""
    path = file_of(tmp_path, SIZE)
    command = [sys.executable, "-c", PROGRAM, cloud.url, str(path), str(5 * CHUNK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        assert process.stdout.readline() == b"far enough\n"
        process.send_signal(signal.SIGKILL)
    assert {each.suffix for each in states()} == {".json", ".lock"}
    assert "start" not in await resumed(cloud, path)
    assert versions(cloud) == 1
    assert cloud.requests.received(SEND) <= SIZE + CHUNK
