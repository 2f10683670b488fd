"""Long work on files, done in threads a step at a time, so that the event loop goes on. It knows no transfer."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

from forbear.transfer.checksum import Crc32c

_PIECE = 256 * 1024
_PIECES = 64


async def in_steps(steps: Iterator[None]) -> None:
    """Run an iterator to its end in threads; cancelled, it ends with the step under way, and not before.

    Otherwise a thread would go on with files that are closed by then, and whose numbers others have.
    """
    loop = asyncio.get_running_loop()
    ended = False
    while not ended:
        some = loop.run_in_executor(None, _some, steps)
        try:
            ended = await asyncio.shield(some)
        except asyncio.CancelledError:
            while not some.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({some})
            raise


def hash_file(descriptor: int, start: int, count: int, checksum: Crc32c) -> Iterator[None]:
    """Have `checksum` see `count` bytes of an open file (fewer where it ends) from `start` on."""
    os.lseek(descriptor, start, os.SEEK_SET)
    while count and (data := os.read(descriptor, min(_PIECE, count))):
        checksum.update(data)
        count -= len(data)
        yield


def _some(steps: Iterator[None]) -> bool:
    """Make some steps; whether the end is reached."""
    for _ in range(_PIECES):
        try:
            next(steps)
        except StopIteration:
            return True
    return False
