"""Rates: the bank knows what a dollar costs."""

import random
import time

import httpx


def euro(bank: str) -> float:
    """Return what a dollar costs in euros."""
    wait = 1.0
    while True:
        try:
            return float(httpx.get(f"{bank}/rates", timeout=5).json()["euro"])
        except httpx.TransportError:
            time.sleep(random.uniform(0, wait))
            wait = min(60, 2 * wait)
