"""Stock: the warehouse counts pieces, and keeps one reservation for each order."""

import requests

import forbear
from forbear.clients.requests import RetryAdapter

session = requests.Session()
session.mount("http://", RetryAdapter())


def pieces(warehouse: str, item: str) -> int:
    """Return how many pieces of an item are left."""
    response = session.get(f"{warehouse}/stock/{item}", timeout=5)
    response.raise_for_status()
    return int(response.json()["pieces"])


def reserve(warehouse: str, order: str, item: str) -> None:
    """Reserve a piece of an item for an order."""
    with forbear.safe_to_repeat(f"POST {warehouse}/reservations"):
        session.post(f"{warehouse}/reservations", json={"order": order, "item": item}, timeout=5).raise_for_status()
