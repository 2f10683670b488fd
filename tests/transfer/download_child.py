"""A process that downloads and kills itself once so many bytes are across: `python -m ... URL TARGET SLICES BYTES`."""

import asyncio
import os
import signal
import sys

from forbear.transfer.downloads.download import download
from forbear.transfer.progress import Progress, current_progress
from forbear.transfer.storage.client import Storage
from tests.transfer.downloads import URL, Count


async def main(url: str, target: str, slices: str, size: str) -> None:
    """Download until it is time."""
    current_progress.set(Progress(Count(int(size), lambda: os.kill(os.getpid(), signal.SIGKILL))))
    async with Storage(endpoint=url) as storage:
        await download(storage, URL, target, slices=int(slices))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
