"""Download a large file while it is still arriving, over connections that break. Library: aiohttp.

A body that breaks off is continued where it stopped, so the loop below sees every byte once.
"""

import asyncio
import hashlib
import sys
from pathlib import Path

import aiohttp

from forbear.clients.aiohttp import RetryMiddleware


async def download(url: str, target: Path) -> str:
    """Write the body at a URL to a file; return its SHA-256."""
    digest = hashlib.sha256()
    async with aiohttp.ClientSession(middlewares=(RetryMiddleware(),)) as session, session.get(url) as response:
        response.raise_for_status()
        with target.open("wb") as file:
            async for chunk in response.content.iter_chunked(65_536):
                file.write(chunk)
                digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    print(asyncio.run(download(sys.argv[1], Path(sys.argv[2]))))
