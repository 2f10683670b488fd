"""Properties of every decision there can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential
from forbear.core.decide import Reason, Stop, Wait, decide
from forbear.core.limits import Limits
from forbear.core.verdict import Kind, Verdict

INFINITY = float("inf")

seconds = st.floats(min_value=0, max_value=1e6) | st.sampled_from([0.0, 1.0, 60.0, 900.0])
limits = st.builds(
    Limits,
    attempts=st.none() | st.integers(min_value=1, max_value=20),
    timeout=st.none() | st.floats(min_value=1e-3, max_value=1e6),
    clamp=st.booleans(),
    max_retry_after=seconds,
    unlimited=st.just(True),
)
verdicts = st.builds(
    Verdict,
    kind=st.sampled_from([Kind.TRANSIENT, Kind.NOT_EXECUTED, *Kind]),
    retry_after=st.none() | seconds | st.just(INFINITY),
    delay=st.none() | st.none() | seconds,
)
backoffs = st.builds(Exponential, jitter=st.sampled_from(JITTERS)) | st.builds(Constant, seconds, spread=seconds)
ratios = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(limits, backoffs, verdicts, st.integers(min_value=1, max_value=25), seconds, ratios, st.booleans())
def test_waits_keep_every_promise(
    limits: Limits,
    backoff: Exponential | Constant,
    verdict: Verdict,
    attempt: int,
    elapsed: float,
    u: float,
    repeatable: bool,
) -> None:
    """Safe, polite and bounded, or no wait at all."""
    step = decide(limits, backoff, verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=repeatable)
    if isinstance(step, Stop):
        assert step.text
        return
    assert verdict.kind is Kind.NOT_EXECUTED or (verdict.kind is Kind.TRANSIENT and repeatable)
    assert limits.attempts is None or attempt < limits.attempts
    assert 0 <= step.delay < INFINITY
    assert step.delay >= (verdict.retry_after or 0)
    if limits.timeout is not None:
        assert elapsed < limits.timeout
        assert step.delay <= limits.timeout - elapsed
    elif verdict.retry_after is not None:
        assert verdict.retry_after <= limits.max_retry_after


@given(limits, backoffs, verdicts, st.integers(min_value=1, max_value=25), seconds, ratios)
def test_what_is_safe_to_repeat_is_decided_first(
    limits: Limits, backoff: Exponential | Constant, verdict: Verdict, attempt: int, elapsed: float, u: float
) -> None:
    """An operation that may not be repeated is stopped for that reason, or treated as one that may."""
    answers = [
        decide(limits, backoff, verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=repeatable)
        for repeatable in (True, False)
    ]
    if verdict.kind is Kind.TRANSIENT:
        assert isinstance(answers[1], Stop)
        assert answers[1].reason is Reason.UNSAFE
    else:
        assert repr(answers[0]) == repr(answers[1])


@given(backoffs, seconds, ratios, st.floats(min_value=1e-3, max_value=1e6), st.booleans())
def test_jitter_on_top_of_the_servers_word(
    backoff: Exponential | Constant, asked: float, u: float, timeout: float, clamp: bool
) -> None:
    """Never earlier than asked; at most a second or a tenth later, unless the backoff is longer or time runs out."""
    verdict = Verdict(Kind.TRANSIENT, retry_after=asked)
    limits = Limits(None, timeout, clamp)
    step = decide(limits, backoff, verdict, attempt=1, elapsed=0, u=u, repeatable=True)
    own = backoff.delay(0, u)
    if asked > timeout:
        assert isinstance(step, Stop)
        assert step.reason is Reason.RETRY_AFTER
    elif own > timeout and not clamp:
        assert isinstance(step, Stop)
        assert step.reason is Reason.TIMEOUT
    else:
        assert isinstance(step, Wait)
        jittered = asked + u * max(1, asked / 10)
        assert step.delay == pytest.approx(min(max(own, jittered), timeout))
        assert step.delay >= asked


@given(limits, backoffs, verdicts, st.integers(min_value=1, max_value=25), seconds, ratios)
def test_a_retry_late_in_a_run_would_be_one_earlier(
    limits: Limits, backoff: Exponential | Constant, verdict: Verdict, attempt: int, elapsed: float, u: float
) -> None:
    """A failure that is retried late in a run would have been retried earlier, too."""

    def goes_on(attempt: int, elapsed: float) -> bool:
        step = decide(limits, backoff, verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=True)
        return isinstance(step, Wait)

    if goes_on(attempt, elapsed):
        assert goes_on(attempt, elapsed / 2)
        assert isinstance(backoff, Exponential) or goes_on(1, elapsed)
