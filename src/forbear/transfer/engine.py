"""Engine: an event loop with an open Storage in a thread of its own, for all that a process is given to do, bit by bit.

It closes itself when there was nothing to do for a while, and at the end of the process.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from forbear.transfer.storage.settings import Settings
from forbear.transfer.storage.storage import Storage

_LINGER = 1.0
_LAST_WORDS = 5.0

_T = TypeVar("_T")


class _Engine:
    """A Storage that is open; `users` are at work with it."""

    def __init__(self, settings: Settings) -> None:
        self.users = 0
        self.opened: Future[tuple[asyncio.AbstractEventLoop, Storage]] = Future()
        self.thread = threading.Thread(target=self._serve, name="forbear-transfer", daemon=True)
        self.settings = settings
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def linger(self) -> None:
        """Close in a while unless there is something to do until then; called in the loop."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LINGER, self._leave)

    def stop(self) -> None:
        """Close now; called in the loop."""
        self._over.set()

    def _leave(self) -> None:
        with _lock:
            if self.users == 0:
                _forget(self)
                self.stop()

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            with _lock:
                _forget(self)
            if self.opened.done():
                raise
            self.opened.set_exception(error)

    async def _main(self) -> None:
        async with self.settings.storage() as storage:
            self.opened.set_result((asyncio.get_running_loop(), storage))
            await self._over.wait()


_engines: dict[Settings, _Engine] = {}
_lock = threading.Lock()


def run_here(settings: Settings, work: Callable[[Storage], Coroutine[Any, Any, _T]]) -> _T:
    """Run to the end what needs a Storage; called from any thread but an engine's own."""
    with _lock:
        engine = _engines.get(settings)
        if engine is None:
            engine = _engines[settings] = _Engine(settings)
            engine.thread.start()
        engine.users += 1
    try:
        loop, storage = engine.opened.result()
        try:
            return asyncio.run_coroutine_threadsafe(work(storage), loop).result()
        finally:
            loop.call_soon_threadsafe(engine.linger)
    finally:
        with _lock:
            engine.users -= 1


def _forget(engine: _Engine) -> None:
    if _engines.get(engine.settings) is engine:
        del _engines[engine.settings]


@atexit.register
def _close() -> None:
    with _lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        with suppress(Exception):  # it did not open
            loop, _ = engine.opened.result(_LAST_WORDS)
            loop.call_soon_threadsafe(engine.stop)
            engine.thread.join(_LAST_WORDS)


def _forked() -> None:
    """The threads are not in the child, and a lock might be held by one of them for ever."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
