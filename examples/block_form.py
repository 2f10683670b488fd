"""Send batches of readings in a loop, and again after a failure, without a function to decorate. Library: httpx.

Each attempt runs the block. A batch has a number, and a PUT of the same batch leaves the same state.
"""

import asyncio
import sys
from collections.abc import Sequence

import httpx

import forbear

POLICY = forbear.retry(on=forbear.transient, attempts=5, timeout=60)


def push(store: str, batches: Sequence[str]) -> int:
    """Send all batches, one after the other; return how many requests that took."""
    requests = 0
    with httpx.Client(base_url=store) as client:
        for number, batch in enumerate(batches):
            for attempt in POLICY:
                with attempt:
                    requests += 1
                    client.put(f"/batches/{number}", content=batch).raise_for_status()
    return requests


async def apush(store: str, number: int, batch: str) -> None:
    """Send one batch."""
    async with httpx.AsyncClient(base_url=store) as client:
        async for attempt in POLICY:
            with attempt:
                (await client.put(f"/batches/{number}", content=batch)).raise_for_status()


if __name__ == "__main__":
    print(push(sys.argv[1], sys.argv[3:]))
    asyncio.run(apush(sys.argv[1], 100, sys.argv[2]))
