"""Manage bookings with a client that has settings of its own. Library: httpx.

`forbear.install` keeps the proxies, certificates and other settings of the client. A DELETE may be sent twice, because
the booking is gone either way. A POST is sent again only if the first one was certainly not executed.
"""

import sys
from typing import Any

import httpx

import forbear


def connect(api: str) -> httpx.Client:
    """Return a client of the API at this URL."""
    return forbear.install(httpx.Client(base_url=api, follow_redirects=True), attempts=4, timeout=60)


def book(client: httpx.Client, room: str) -> Any:
    """Book a room; return the booking."""
    response = client.post("/bookings", json={"room": room})
    response.raise_for_status()
    return response.json()


def cancel(client: httpx.Client, number: str) -> None:
    """Cancel a booking."""
    client.delete(f"/bookings/{number}").raise_for_status()


if __name__ == "__main__":
    with connect(sys.argv[1]) as hotel:
        booked = book(hotel, sys.argv[2])
        cancel(hotel, booked["number"])
