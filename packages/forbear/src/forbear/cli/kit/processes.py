"""Python processes that import nothing from the folder in which they start: it may hold code of others."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

_NAME = "PYTHONSAFEPATH"
_locks: dict[str, threading.Lock] = {}


def can_be_safe() -> bool:
    """Return whether `safe_path` works: `python -E` ignores the environment, also in the processes that it starts."""
    return bool(sys.flags.safe_path or not sys.flags.ignore_environment)


@contextmanager
def safe_path() -> Generator[None]:
    """Keep the current folder out of `sys.path` of the Python processes that start within the block.

    multiprocessing starts them by `python -c`, which puts it first, before the standard library.
    """
    # Made at the first use, since gevent replaces locks after the import; setdefault lets one of two threads win.
    with _locks.setdefault(_NAME, threading.Lock()):
        before = os.environ.get(_NAME)
        os.environ[_NAME] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_NAME]
            else:
                os.environ[_NAME] = before
