"""Errors on which a client used up retries of its own: no run multiplies these."""

import pytest

import forbear
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.core.verdict import Kind, Verdict
from forbear.policy import retry
from forbear.testing.script import AsyncScript, Script, ScriptEnded
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import Busy

EXHAUSTED = retry(on=lambda error: Verdict(Kind.TRANSIENT, exhausted=True), attempts=3)


def test_a_run_ends_at_once() -> None:
    """The error has a report that says why, and an outer run stops there, too."""
    outer = retry(on=Busy, attempts=9)
    with virtual_time(seed=1) as time, pytest.raises(Busy) as caught:
        outer.call(EXHAUSTED(Script(Busy())))
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.EXHAUSTED
    assert found.text == "the retries of the client itself are used up; turn them off, or pass retry_exhausted=True"
    assert (found.count, time.slept) == (1, [])


async def test_an_async_run_ends_at_once() -> None:
    """The rule is the same for a coroutine function."""
    with virtual_time(seed=1), pytest.raises(Busy) as caught:
        await EXHAUSTED.acall(AsyncScript(Busy()))
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.EXHAUSTED


def test_a_policy_may_go_on() -> None:
    """With `retry_exhausted` it is an error like any other."""
    with virtual_time(seed=1):
        assert EXHAUSTED.replace(retry_exhausted=True).call(Script(Busy(), Busy(), "done")) == "done"


def test_joined_policies_go_on() -> None:
    """`retry_exhausted` is that of the left policy, also for the errors of the right one."""
    policy = retry(on=KeyError, retry_exhausted=True) | EXHAUSTED
    with virtual_time(seed=1):
        assert policy.call(Script(Busy(), Busy(), "done")) == "done"


def test_other_limits_count_first() -> None:
    """A run that may not repeat the call at all says so."""
    with virtual_time(seed=1), pytest.raises(Busy) as caught:
        EXHAUSTED.with_repeatable(False).call(Script(Busy()))
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


@pytest.mark.parametrize("exhausted", [False, True])
def test_an_update_ends_as_well(exhausted: bool) -> None:
    """A write that may have been applied is read again only if the policy goes on after exhausted retries."""
    write, read = Script(Busy()), Script(1, 2)

    def update() -> object:
        policy = EXHAUSTED.replace(retry_exhausted=exhausted)
        return forbear.update(
            read=read, modify=lambda n: n, write=write, conflict=lambda e: False, mine=lambda n: n == 2, policy=policy
        )

    with virtual_time(seed=1):
        if exhausted:
            assert update() == 2
        else:
            with pytest.raises(Busy) as caught:
                update()
            found = report(caught.value)
            assert found is not None
            assert (found.reason, found.maybe_done) == (Reason.EXHAUSTED, True)
    with pytest.raises(ScriptEnded):
        write(1)
