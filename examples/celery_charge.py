"""A task that charges a customer. Libraries: Celery and requests.

The bank refuses requests with 429 before it executes them. The program states that by a `forbear.Api`, and the
charge is sent again. If the response to a charge is lost, the task fails instead of charging twice.
"""

import os
from typing import Any

import requests
from celery import Celery

from forbear import Api
from forbear.clients.requests import RetryAdapter

BANK = os.environ.get("BANK_URL", "https://bank.example.com")

app = Celery("charges", broker=os.environ.get("BROKER_URL"), backend=os.environ.get("RESULTS_URL"))
bank = requests.Session()
bank.mount(BANK, RetryAdapter(apis=Api(BANK, not_executed=[429])))


@app.task
def charge(customer: str, cents: int) -> Any:
    """Charge a customer; return the bank's receipt."""
    response = bank.post(f"{BANK}/charges", json={"customer": customer, "cents": cents}, timeout=10)
    response.raise_for_status()
    return response.json()
