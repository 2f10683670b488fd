"""The events of a run, for `on_event=` and listeners, and the report that says why it ended."""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import (
    BudgetDegraded,
    BudgetRestored,
    Event,
    Failed,
    GaveUp,
    Recovered,
    Scheduled,
    Succeeded,
    WouldStop,
)
from forbear.core.report import Report

__all__ = [
    "Attempt",
    "BudgetDegraded",
    "BudgetRestored",
    "Event",
    "Failed",
    "GaveUp",
    "Reason",
    "Recovered",
    "Report",
    "Scheduled",
    "Succeeded",
    "WouldStop",
]
