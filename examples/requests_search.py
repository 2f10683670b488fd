"""Search a catalogue and book a room, over an API that is sometimes overloaded. Library: requests.

Two requests are POSTs. A search changes nothing, so it may be sent twice. The program states that by `safe=`. A
booking is never sent twice, unless the server certainly did not execute it.
"""

import sys
from typing import Any

import requests

from forbear.clients.requests import RetryAdapter


def connect(api: str) -> requests.Session:
    """Return a session for the API at this URL."""
    session = requests.Session()
    session.mount(api, RetryAdapter(safe=f"POST {api}/rooms/search"))
    return session


def search(session: requests.Session, api: str, city: str) -> list[str]:
    """Return the free rooms in a city."""
    response = session.post(f"{api}/rooms/search", json={"city": city}, timeout=10)
    response.raise_for_status()
    rooms: list[str] = response.json()
    return rooms


def book(session: requests.Session, api: str, room: str) -> Any:
    """Book a room; return the booking."""
    response = session.post(f"{api}/rooms/{room}/bookings", timeout=10)
    response.raise_for_status()
    return response.json()


if __name__ == "__main__":
    url, place = sys.argv[1:]
    with connect(url) as client:
        print(book(client, url, search(client, url, place)[0]))
