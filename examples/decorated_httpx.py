"""Read prices and place an order, by decorated functions. Library: httpx.

`forbear.transient` knows which errors of httpx may pass. After a lost response to a GET, its function is called again.
After a lost response to a POST it is not, because the error shows a request that may have been executed.
"""

import asyncio
import sys

import httpx

import forbear


@forbear.retry(on=forbear.transient, attempts=5, timeout=60)
def price(shop: str, item: str) -> int:
    """Return the price of an item, in cents."""
    response = httpx.get(f"{shop}/prices/{item}", timeout=10)
    response.raise_for_status()
    return int(response.json()["cents"])


@forbear.retry(on=forbear.transient, attempts=5, timeout=60)
async def stock(client: httpx.AsyncClient, item: str) -> int:
    """Return how many of an item there are."""
    response = await client.get(f"/stock/{item}")
    response.raise_for_status()
    return int(response.json()["count"])


@forbear.retry(on=forbear.transient, attempts=5, timeout=60)
def order(shop: str, item: str) -> str:
    """Order an item; return the number of the order."""
    response = httpx.post(f"{shop}/orders", json={"item": item}, timeout=10)
    response.raise_for_status()
    return str(response.json()["number"])


async def stocks(shop: str, *items: str) -> list[int]:
    """Return how many there are of each item; all requests are sent at the same time."""
    async with httpx.AsyncClient(base_url=shop) as client:
        return await asyncio.gather(*(stock(client, item) for item in items))


if __name__ == "__main__":
    url, wish = sys.argv[1:]
    print(price(url, wish), asyncio.run(stocks(url, wish)), order(url, wish))
