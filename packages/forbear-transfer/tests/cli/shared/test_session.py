"""Commands that print a listing: when lines are flushed, and what follows if stdout cannot be written."""

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from forbear_cloud import Cloud
from forbear_testkit.cli.running import FORBEAR, Start
from forbear_transfer.cli.shared.session import LinePrinter


class Stream(io.StringIO):
    """A stream that keeps what it had each time it was flushed; it fails after `limit` flushes."""

    def __init__(self, limit: int = 100) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.limit = limit

    def flush(self) -> None:
        """Keep the text; raise OSError once the limit is reached."""
        if len(self.shown) == self.limit:
            raise BrokenPipeError
        self.shown.append(self.getvalue())


async def test_lines_are_flushed_when_the_loop_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines between two waits are flushed at once, and none of them later than the next wait."""
    monkeypatch.setattr(sys, "stdout", stream := Stream())
    show = LinePrinter()
    for page in ("ab", "cd"):
        for line in page:
            show(line)
        await checkpoint()
    await checkpoint()
    assert stream.shown == ["a\nb\n", "a\nb\nc\nd\n"]


async def test_a_failed_flush_is_left_to_the_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop has no error to handle: the next write, or the last flush, raises it."""
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    monkeypatch.setattr(sys, "stdout", Stream(limit=0))
    LinePrinter()("a")
    await checkpoint()
    assert failures == []
    with pytest.raises(BrokenPipeError):
        sys.stdout.flush()


def test_a_reader_that_leaves_ends_a_listing(cloud: Cloud, env: dict[str, str], start: Start) -> None:
    """A closed pipe ends the command with 1, without a message, even if all lines fit into the pipe."""
    env["STORAGE_EMULATOR_HOST"] = cloud.url
    cloud.store.put("bkt", "a", b"x")
    process = start("ls", "gs://bkt")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(30)) == ("", 1)


def test_a_full_disk_is_an_error(cloud: Cloud, env: dict[str, str]) -> None:
    """A command that cannot write its lines fails, although it writes them late."""
    cloud.store.put("bkt", "a", b"x")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*FORBEAR, "ls", "gs://bkt"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=env | {"STORAGE_EMULATOR_HOST": cloud.url},
            text=True,
            timeout=30,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")
