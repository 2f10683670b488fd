"""Events: each tells what its name says, field by field."""

import copy
import pickle

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import (
    BudgetDegraded,
    BudgetRestored,
    Event,
    Failed,
    GaveUp,
    Operation,
    Recovered,
    Scheduled,
    WouldStop,
    label_of,
)
from forbear.core.report import Report
from forbear.core.verdict import NOT_EXECUTED


def fields(event: Event) -> list[object]:
    """Return the fields of an event, in order."""
    return [getattr(event, name) for name in event.__slots__]


def test_each_event_keeps_its_fields() -> None:
    """Nothing gets lost or mixed up."""
    error = OSError("lost")
    failure = Attempt(1, "OSError", "lost", 0.5, 1.5)
    found = Report("fetch", (failure,), 0.5, Reason.BODY, "gone")
    assert fields(Failed("fetch", 1, 0.5, error, "lost", NOT_EXECUTED, "OSError")) == [
        "fetch", 1, 0.5, error, "lost", NOT_EXECUTED, "OSError",
    ]  # fmt: skip
    assert fields(Scheduled("fetch", 2, 0.5, 1.5, failure)) == ["fetch", 2, 0.5, 1.5, failure, False, None]
    assert fields(Recovered("fetch", 2, 2.5, (failure,))) == ["fetch", 2, 2.5, (failure,), False, False, False]
    assert fields(WouldStop("fetch", 1, 0.5, "unsafe")) == ["fetch", 1, 0.5, "unsafe"]
    assert fields(GaveUp("fetch", found)) == ["fetch", found]
    assert fields(BudgetDegraded("shared budget b", "down", 1.5)) == ["shared budget b", "down", 1.5]
    assert fields(BudgetRestored("shared budget b", 20.0)) == ["shared budget b", 20.0]


def test_a_refused_value_has_no_error() -> None:
    """Failed says so by None."""
    assert Failed("fetch", 1, 0.5, None, "refused", NOT_EXECUTED, "str").error is None


def test_operations_of_unknown_hosts_have_labels() -> None:
    """The name says which host, the label does not; all other names are labels themselves."""
    operation = Operation("GET example.com", "GET")
    assert (operation, label_of(operation), label_of("storage.objects.get")) == (
        "GET example.com", "GET", "storage.objects.get",
    )  # fmt: skip
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert label_of(pickle.loads(pickle.dumps(operation, protocol))) == "GET"
    assert label_of(copy.copy(operation)) == "GET"
