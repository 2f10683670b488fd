"""A web service that places orders with another service. Libraries: FastAPI and httpx.

The other service drops duplicates by the header `Idempotency-Key`, so an order may be sent again after its response was
lost. Run it with `SHOP_URL=https://shop.example.com uvicorn examples.fastapi_httpx:app`.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI, Request

from forbear import Api, IdempotencyKey
from forbear.clients.httpx import AsyncRetryTransport

SHOP = os.environ.get("SHOP_URL", "https://shop.example.com")


@asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncGenerator[None]:
    """Keep one client open while the service runs."""
    transport = AsyncRetryTransport(apis=Api(SHOP, key=IdempotencyKey("Idempotency-Key", add=True)))
    async with httpx.AsyncClient(base_url=SHOP, transport=transport) as service.state.shop:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/prices/{item}")
async def price(item: str, request: Request) -> Any:
    """Return the price of an item."""
    response = await request.app.state.shop.get(f"/prices/{item}")
    response.raise_for_status()
    return response.json()


@app.post("/orders/{item}")
async def order(item: str, request: Request) -> Any:
    """Order an item; return the order."""
    response = await request.app.state.shop.post("/orders", json={"item": item})
    response.raise_for_status()
    return response.json()
