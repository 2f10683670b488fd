"""Payments: the bank charges an order. All attempts carry one Idempotency-Key, so the bank charges once."""

from functools import cache

import httpx

from forbear import Api, IdempotencyKey
from forbear.clients.httpx import RetryTransport


@cache
def client_of(bank: str) -> httpx.Client:
    """Return a client for a bank, which drops duplicates by the header."""
    api = Api(bank, key=IdempotencyKey("Idempotency-Key", add=True))
    return httpx.Client(transport=RetryTransport(apis=api), timeout=5)


def charge(bank: str, order: str, cents: int) -> str:
    """Charge an order; return the number of the receipt."""
    response = client_of(bank).post(f"{bank}/charges", json={"order": order, "cents": cents})
    response.raise_for_status()
    return str(response.json()["receipt"])
