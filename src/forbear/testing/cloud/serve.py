"""Runs the embedded cloud in the foreground until it is told to stop; for the command line."""

import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType

from forbear.testing.cloud.server import Cloud


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    seed: int = 0,
    body_limit: int = 64 * 1024 * 1024,
    memory_limit: int = 1024**3,
    allowed_hosts: Sequence[str] = (),
    on_ready: Callable[[Cloud], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` gets the running cloud once, to announce its URL and arm faults.

    The other arguments are those of `Cloud`. For tests only: never expose it. Only in the main thread (ValueError
    elsewhere: signals arrive there). OSError when the port is taken.
    """
    stop = threading.Event()

    def leave(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Cloud(
            host=host,
            port=port,
            seed=seed,
            body_limit=body_limit,
            memory_limit=memory_limit,
            allowed_hosts=allowed_hosts,
        ) as cloud:
            if on_ready is not None:
                on_ready(cloud)
            # In short waits, because on Windows a signal does not end a wait.
            while not stop.wait(0.5):
                pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
