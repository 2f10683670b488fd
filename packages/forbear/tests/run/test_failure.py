"""The facts that a run reads of a failed attempt."""

from forbear.core.decide import Reason, Stop
from forbear.core.verdict import TRANSIENT
from forbear.run.failure import DetailedFailure, Failure


class Mute(Exception):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_error_describes_itself() -> None:
    """Name and text are those of the error, whatever its class does."""
    for failure in (Failure(TRANSIENT, Mute()), DetailedFailure(TRANSIENT, Mute())):
        assert (failure.name, failure.text) == ("Mute", "(no text: its __str__ raised RuntimeError)")
        assert failure.outcome is failure.error


def test_a_plain_failure_has_the_defaults_of_a_detailed_one() -> None:
    """A run reads both alike."""
    plain, detailed = Failure(TRANSIENT, OSError()), DetailedFailure(TRANSIENT, OSError())
    for name in ("unsafe", *DetailedFailure.__slots__):
        assert getattr(plain, name) == getattr(detailed, name)


def test_a_failure_without_an_error_is_its_response() -> None:
    """The response is the outcome; its name and text are passed."""
    gone = Stop(Reason.BODY, "the body is gone")
    failure = DetailedFailure(TRANSIENT, response=503, name="HTTP 503", text="Service Unavailable", blocked=gone)
    assert (failure.outcome, failure.name, failure.text) == (503, "HTTP 503", "Service Unavailable")
    assert failure.blocked is gone
