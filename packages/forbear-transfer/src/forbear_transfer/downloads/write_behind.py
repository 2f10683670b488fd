"""Write what arrives in a thread, while the event loop receives the next bytes."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from types import TracebackType
from typing import Self

_JOINED = 256 * 1024
"""The bytes that are written at once, at least: with fewer, the threads would often wait for each other."""

_MOST_BEHIND = 8
"""The calls of `write` that may wait for the thread; `take` waits for room beyond them."""


class WriteBehind(AbstractContextManager["WriteBehind"]):
    """A context manager whose thread calls `write` with the bytes that `take` gets, in their order.

    At its end all bytes are written. After an error of `write` nothing more is written: `take` raises it, or the end of
    the block does, unless an interrupt or a cancellation ends the block. After an interrupt during the end itself, only
    the call that is under way is waited for. In no case does the thread write after the block. Without a thread, as if
    there are too many, `take` calls `write` itself.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._pieces: list[bytes] = []
        self._size = 0
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(_MOST_BEHIND)
        self._error: BaseException | None = None
        self._dropped = False
        self._ended = threading.Event()  # a join would not do: once interrupted, it no longer waits before Python 3.13

    def __enter__(self) -> Self:
        try:
            threading.Thread(target=self._run, daemon=True, name="forbear-writer").start()
        except RuntimeError:
            self._ended.set()
        return self

    def take(self, data: bytes) -> None:
        """Have `data` written; raise the error of an earlier call."""
        if self._error is not None:
            raise self._error
        if self._ended.is_set():
            self._write(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _JOINED:
            self._hand_on()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._pieces:
                self._hand_on()
        finally:
            self._end()
        if self._error is not None and (error is None or isinstance(error, Exception)):
            raise self._error

    def _hand_on(self) -> None:
        data = b"".join(self._pieces)
        self._pieces.clear()  # first, so that after an interrupt nothing is written twice
        self._size = 0
        self._room.acquire()
        self._queue.put(data)

    def _end(self) -> None:
        """Wait for the end of the thread, also after an interrupt, and raise that then."""
        self._queue.put(None)
        interrupt: BaseException | None = None
        while not self._ended.is_set():
            try:
                self._ended.wait()
            except BaseException as raised:
                interrupt, self._dropped = raised, True
        if interrupt is not None:
            raise interrupt

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            if self._error is None and not self._dropped:
                try:
                    self._write(data)
                except BaseException as error:
                    self._error = error
            self._room.release()
        self._ended.set()
