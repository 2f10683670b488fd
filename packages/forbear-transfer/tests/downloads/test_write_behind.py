"""Bytes that a thread writes: all of them, in order, and none after the block, whatever ends it."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.downloads.write_behind import WriteBehind

PIECE = b"x" * 262_144


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Generator[None]:
    """After each test the threads have ended, or do so at once."""
    yield
    for thread in threading.enumerate():
        if thread.name == "forbear-writer":
            thread.join()


@given(st.lists(st.sampled_from([1, 1000, 100_000, 262_144, 300_000]), max_size=40))
def test_bytes_are_written_in_their_order(sizes: list[int]) -> None:
    """All bytes are written when the block ends, those of small pieces together, and by another thread."""
    written: list[bytes] = []
    threads: set[int] = set()

    def write(data: bytes) -> None:
        threads.add(threading.get_ident())
        written.append(data)

    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    with WriteBehind(write) as behind:
        for piece in pieces:
            behind.take(piece)
    assert b"".join(written) == b"".join(pieces)
    assert all(len(data) >= 262_144 for data in written[:-1])
    assert threading.get_ident() not in threads


def test_a_slow_disk_lets_the_sender_wait() -> None:
    """No more than 8 calls wait for the thread, so memory has a bound."""
    goes_on, begun = threading.Event(), threading.Event()
    taken: list[int] = []

    def write(_: bytes) -> None:
        begun.set()
        goes_on.wait()

    def send() -> None:
        with WriteBehind(write) as behind:
            for number in range(40):
                behind.take(PIECE)
                taken.append(number)

    sender = threading.Thread(target=send)
    sender.start()
    begun.wait()
    while len(taken) < 8:
        sender.join(0.001)
    sender.join(0.05)
    assert len(taken) == 8
    goes_on.set()
    sender.join()
    assert len(taken) == 40


@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_nothing_is_written_after_an_error(pieces: int) -> None:
    """The error of a full disk arrives by the next piece or at the end, and no byte leaves a hole behind it."""
    calls: list[int] = []

    def write(data: bytes) -> None:
        calls.append(len(data))
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"), WriteBehind(write) as behind:  # noqa: PT012
        for _ in range(pieces):
            behind.take(PIECE)
    assert calls == [262_144]


@pytest.mark.parametrize("error", [ConnectionError, KeyboardInterrupt, asyncio.CancelledError])
def test_what_has_arrived_is_written_before_another_error_goes_on(error: type[BaseException]) -> None:
    """A connection that breaks takes nothing back: the next request continues behind all bytes."""
    written: list[bytes] = []
    with pytest.raises(error), WriteBehind(written.append) as behind:  # noqa: PT012
        behind.take(b"a" * 300_000)
        behind.take(b"b")
        raise error
    assert b"".join(written) == b"a" * 300_000 + b"b"


@pytest.mark.parametrize(
    ("ends", "raised"),
    [(ConnectionError, OSError), (KeyboardInterrupt, KeyboardInterrupt), (asyncio.CancelledError,) * 2],
)
def test_a_full_disk_hides_no_interrupt(ends: type[BaseException], raised: type[BaseException]) -> None:
    """The error of the disk counts more than that of a connection, and less than an interrupt or a cancellation."""

    def write(_: bytes) -> None:
        raise OSError("no space left")

    with pytest.raises(raised), WriteBehind(write) as behind:  # noqa: PT012
        behind.take(b"x")
        raise ends


def test_without_a_thread_it_writes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download is slower on a system that has no more threads, and does not fail."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    written: list[bytes] = []
    with WriteBehind(written.append) as behind:
        behind.take(b"a")
        assert written == [b"a"]


_INTERRUPTED = """
import os, signal, sys, threading, time
from forbear_transfer.downloads.write_behind import WriteBehind

open_file = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)]
begun, goes_on = threading.Event(), threading.Event()

def write(data):
    begun.set()
    goes_on.wait()  # a slow disk
    os.write(open_file[0], data)

def interrupt():
    begun.wait()
    for _ in range(int(sys.argv[4])):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)  # else the two are one
    goes_on.set()

threading.Thread(target=interrupt).start()
try:
    with WriteBehind(write) as behind:
        for _ in range(int(sys.argv[3])):
            behind.take(b"x" * 262_144)
except KeyboardInterrupt:
    os.close(open_file[0])
    again = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
    assert again == open_file[0]
    time.sleep(0.05)
    assert os.fstat(again).st_size == 0, "written into another file"
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
@pytest.mark.parametrize("pieces", [1, 5, 40], ids=["at the last piece", "with pieces that wait", "while it waits"])
@pytest.mark.parametrize("interrupts", [1, 2])
def test_an_interrupt_leaves_no_thread_that_writes(tmp_path: Path, pieces: int, interrupts: int) -> None:
    """After Ctrl-C, once or twice, no byte goes to the file that then has the number of the closed one."""
    arguments = [str(tmp_path / "file"), str(tmp_path / "other"), str(pieces), str(interrupts)]
    ran = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "interrupted\n"), ran.stderr
