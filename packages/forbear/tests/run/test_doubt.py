"""Errors of the user's own judging functions: they carry what must not be repeated of the attempt that they judged."""

import contextlib
from typing import Any

import pytest

from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.testing.script import Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.shapes import (
    INNER,
    OUTER,
)


@pytest.mark.parametrize("option", ["on", "delay", "stop", "on_result"])
@pytest.mark.parametrize("own", [True, False], ids=["not-repeatable", "inner-unsafe"])
def test_a_judge_that_raises(option: str, own: bool) -> None:
    """The error that is raised, that of the function if there is one, says that it must not be repeated."""
    made = 0

    def fail(thing: object) -> Any:
        raise KeyError(thing)

    chosen: dict[str, Any] = {option: fail}

    def pay() -> object:
        nonlocal made
        made += 1
        if not own:
            with contextlib.suppress(Busy):
                INNER.call(Script(Busy))
        if "on_result" in chosen:
            return made
        raise Busy

    policy = BUSY.replace(**chosen)
    policy = policy.with_repeatable(False) if own else policy.replace(retry_exhausted=True)
    with virtual_time(), pytest.raises((KeyError, Busy)) as caught:  # a run that must stop does not ask `stop`
        OUTER.call(policy.call, pay)
    assert made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


def test_a_judge_that_raises_where_repeats_are_harmless() -> None:
    """The function's own error is raised, and its report says that the judge raised."""
    script = Script(Busy, Busy, Busy)

    def fail(thing: object) -> Any:
        raise KeyError(thing)

    with virtual_time(), pytest.raises(Busy) as caught:
        BUSY.with_on(fail).call(script)
    assert len(script.calls) == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.BROKEN
