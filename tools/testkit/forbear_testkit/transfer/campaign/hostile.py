"""Hostile surroundings for a while: a disk that is full, a user who may nothing, a line that is held up."""

import os
import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def full_disk(size: int) -> Generator[None]:
    """No file can have more than `size` bytes: the next one fails, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def unprivileged(*folders: Path) -> Generator[None]:
    """Be somebody whom permissions hold for: the superuser becomes nobody, to whom `folders` belong then."""
    if os.geteuid() != 0:
        yield
        return
    for folder in folders:
        for each in (folder, *folder.rglob("*")):
            os.chown(each, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
