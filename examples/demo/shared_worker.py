"""One process of the fleet in the shared part of the demo, a script: `python shared_worker.py URL LOG EVERY`.

It makes calls until its input ends. Of EVERY calls the last one fails and takes a retry from the shared budget, and the
others succeed. The process appends a byte for each event to LOG, which all processes share.
"""

import os
import select
import sys

from forbear.core.events import BudgetDegraded, Event
from forbear.shared_budget.budget import SharedBudget

NAME = "demo"
CAPACITY, DEPOSIT = 20, 0.1
STARTED, SUCCESS, GRANTED, REFUSED, LOST, BACK = b"+", b"s", b"g", b"r", b"l", b"b"
"""The events: a process is ready, a success, a retry granted or refused, the server lost or back."""

_PAUSE = 0.001
"""Seconds between calls."""


def work(url: str, log: str, every: int) -> None:
    """Make calls until the input ends, with the budget at `url`, and append the events to the file `log`.

    Of `every` calls, one fails.
    """
    out = os.open(log, os.O_WRONLY | os.O_APPEND)

    def note(event: Event) -> None:
        os.write(out, LOST if isinstance(event, BudgetDegraded) else BACK)

    budget = SharedBudget(url, NAME, capacity=CAPACITY, deposit=DEPOSIT, on_event=note)
    os.write(out, STARTED)
    number = 0
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        number += 1
        if number % every:
            os.write(out, SUCCESS)  # first: a process that is killed here has earned at most what the log says
            budget.put(retried=False)
        else:
            os.write(out, GRANTED if budget.take() else REFUSED)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
