"""Payments: the bank charges an order. Its retries have a limit, a deadline and jitter."""

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random_exponential


@retry(
    retry=retry_if_exception_type(httpx.TransportError),
    wait=wait_random_exponential(max=10),
    stop=stop_after_attempt(4) | stop_after_delay(60),
    reraise=True,
)
def charge(bank: str, order: str, cents: int) -> str:
    """Charge an order; return the number of the receipt."""
    response = httpx.post(f"{bank}/charges", json={"order": order, "cents": cents}, timeout=5)
    response.raise_for_status()
    return str(response.json()["receipt"])
