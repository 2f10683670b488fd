"""`read_regular`: read files that the audited code may name: no device, no pipe, and no more than a limit."""

import stat
from pathlib import Path


def read_regular(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file that has at most `limit`.

    Raises ValueError, with the reason, for a longer file and for one that is not regular, and OSError if it cannot be
    read.
    """
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):  # to open a pipe or a device may never end
        raise ValueError("it is not a regular file")
    if state.st_size > limit:
        raise ValueError(f"{state.st_size / 1e6:.1f} MB are more than the limit of {limit / 1e6:.0f} MB")
    with path.open("rb") as file:
        data = file.read(limit + 1)  # files below /proc have more than they say
    if len(data) > limit:
        raise ValueError(f"it is longer than the limit of {limit / 1e6:.0f} MB")
    return data
