"""Payments: the bank charges an order. All attempts carry one Idempotency-Key, so the bank charges once."""

import httpx

from forbear.clients.httpx import RetryTransport

client = httpx.Client(transport=RetryTransport(idempotency_header="Idempotency-Key"), timeout=5)


def charge(bank: str, order: str, cents: int) -> str:
    """Charge an order; return the number of the receipt."""
    response = client.post(f"{bank}/charges", json={"order": order, "cents": cents})
    response.raise_for_status()
    return str(response.json()["receipt"])
