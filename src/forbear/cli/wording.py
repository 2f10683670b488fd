"""Limits, backoffs and forecasts in words. It computes nothing."""

from typing import TYPE_CHECKING

from forbear.cli.forecast import Forecast
from forbear.core.backoff import Constant, Exponential
from forbear.core.decide import Limits, show

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff


def of_range(seconds: tuple[float, float]) -> str:
    """A range of waits: "1 to 2 s", "32 s"."""
    low, high = (show(value) for value in seconds)
    return high if low == high else f"{low.removesuffix(' s')} to {high}"


def of_backoff(backoff: "Backoff") -> str:
    """What a backoff does, in one line."""
    if isinstance(backoff, Exponential):
        steps = f"steps of {show(backoff.initial)}, times {backoff.multiplier:g}, at most {show(backoff.maximum)}"
        return f"{steps}; jitter: {backoff.jitter}"
    if isinstance(backoff, Constant):
        return f"always {of_range((backoff.seconds, backoff.seconds + backoff.spread))}"
    return repr(backoff)


def of_limits(limits: Limits) -> str:
    """The limits, in one line."""
    attempts = "any number of attempts" if limits.attempts is None else f"at most {limits.attempts} attempts"
    return f"{attempts}, {'no timeout' if limits.timeout is None else f'timeout {show(limits.timeout)}'}"


def of_end(found: Forecast) -> str:
    """Where a run ends, and why."""
    earliest, medium, latest = (end.retries for end in (found.earliest, found.medium, found.latest))
    if earliest is None:
        return f"does not end within {len(found.retries)} retries"
    if earliest == latest:
        return f"ends after {_retries(earliest)}: {found.earliest.text}"
    if latest is not None:
        return f"ends after {earliest} to {_retries(latest)}: {found.earliest.text}"
    usual = "" if medium is None else f", {medium} with medium waits"
    return f"ends after {_retries(earliest)} at the earliest{usual}, more if the waits are short: {found.earliest.text}"


def _retries(count: int) -> str:
    return f"{count} retr{'y' if count == 1 else 'ies'}"
