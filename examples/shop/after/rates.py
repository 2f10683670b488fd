"""Rates: the bank knows what a dollar costs."""

import httpx

import forbear


@forbear.retry(on=httpx.TransportError, timeout=60)
def euro(bank: str) -> float:
    """Return what a dollar costs in euros."""
    return float(httpx.get(f"{bank}/rates", timeout=5).json()["euro"])
