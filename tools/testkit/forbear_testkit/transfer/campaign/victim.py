"""A transfer in a process of its own, which may be killed: `python -m forbear_testkit.transfer.campaign.victim`."""

import asyncio
import sys
from pathlib import Path

from forbear_transfer.downloads.download import download
from forbear_transfer.objects import Url
from forbear_transfer.rewrite import copy
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.upload import upload


async def transfer(direction: str, endpoint: str, source: str, target: str, state: str, size: int) -> int:
    """Carry it out, and return the generation; `size` is that of a chunk, or the number of slices."""
    folder = Path(state)
    async with Storage(endpoint=endpoint) as storage:
        match direction:
            case "up":
                made = await upload(storage, source, Url.parse(target), chunk_size=size, state=folder)
            case "copy":
                made = await copy(storage, Url.parse(source), Url.parse(target), state=folder)
            case _:
                made = await download(storage, Url.parse(source), target, slices=size, state=folder)
    return made.generation


if __name__ == "__main__":
    way, endpoint, source, target, state, size = sys.argv[1:]
    print(asyncio.run(transfer(way, endpoint, source, target, state, int(size))))
