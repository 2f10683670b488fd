"""A process that downloads, and kills itself after a number of bytes: `python -m ... URL TARGET SLICES BYTES`."""

import asyncio
import os
import signal
import sys

from forbear_testkit.transfer.downloads import URL, Count
from forbear_transfer.downloads.download import download
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.storage.client import Storage


async def main(url: str, target: str, slices: str, size: str) -> None:
    """Download until the process kills itself."""
    current_progress.set(Progress(Count(int(size), lambda: os.kill(os.getpid(), signal.SIGKILL))))
    async with Storage(endpoint=url) as storage:
        await download(storage, URL, target, slices=int(slices))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
