"""Stock: the warehouse counts pieces, and keeps one reservation for each order."""

import requests
from tenacity import retry, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random_exponential

patient = retry(
    retry=retry_if_exception_type(requests.ConnectionError),
    wait=wait_random_exponential(max=10),
    stop=stop_after_attempt(4) | stop_after_delay(60),
    reraise=True,
)


@patient
def pieces(warehouse: str, item: str) -> int:
    """Return how many pieces of an item are left."""
    response = requests.get(f"{warehouse}/stock/{item}", timeout=5)
    response.raise_for_status()
    return int(response.json()["pieces"])


@patient
def reserve(warehouse: str, order: str, item: str) -> None:
    """Reserve a piece of an item for an order."""
    requests.post(f"{warehouse}/reservations", json={"order": order, "item": item}, timeout=5).raise_for_status()
