"""Events: each tells what its name says, field by field."""

from forbear.core.decide import Reason
from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled
from forbear.core.report import Attempt, Report
from forbear.core.verdict import NOT_EXECUTED


def fields(event: Event) -> list[object]:
    """What it tells, in order."""
    return [getattr(event, name) for name in event.__slots__]


def test_fields() -> None:
    """Nothing gets lost or mixed up."""
    error = OSError("lost")
    failure = Attempt(1, "OSError", "lost", 0.5, 1.5)
    found = Report("fetch", (failure,), 0.5, Reason.BODY, "gone")
    assert fields(Failed("fetch", 1, 0.5, error, "lost", NOT_EXECUTED, "OSError")) == [
        "fetch", 1, 0.5, error, "lost", NOT_EXECUTED, "OSError",
    ]  # fmt: skip
    assert fields(Scheduled("fetch", 2, 0.5, 1.5, failure)) == ["fetch", 2, 0.5, 1.5, failure]
    assert fields(Recovered("fetch", 2, 2.5, (failure,))) == ["fetch", 2, 2.5, (failure,)]
    assert fields(GaveUp("fetch", found)) == ["fetch", found]


def test_a_refused_value_has_no_error() -> None:
    """Failed says so by None."""
    assert Failed("fetch", 1, 0.5, None, "refused", NOT_EXECUTED, "str").error is None
