"""Grants: a loop asks, then waits; what is open is settled when it is asked, and keeps nothing alive after that."""

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from forbear.core.verdict import TRANSIENT
from forbear.run.budget import Budget
from forbear.run.failure import Failure
from forbear.run.grant import Grant, OpenGrant
from forbear.run.late_grant import LateGrant
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.run.stopping import InterruptibleGrant, stop_on
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.plugin import collect_leftovers
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.remote_budget import Remote


class Known(Budget):
    """A budget whose late answer is there at once."""

    open_grant = LateGrant

    def ask(self) -> bool:
        """Answer."""
        return True


def grant_of(budget: Budget | None, error: Exception | None = None) -> Grant:
    """Return the grant of the first retry of a run."""
    policy = BUSY if budget is None else BUSY.with_budget(budget)
    runtime = current.get()
    grant = Run(policy, "op", runtime, runtime.monotonic()).after(Failure(TRANSIENT, error or Busy()))
    assert grant is not None
    return grant


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(lambda: None, Run), (Budget, Run), (lambda: Remote(True), OpenGrant), (Known, LateGrant)],
    ids=["none", "local", "awaited", "late"],
)
def test_which_grant_a_budget_has(budget: Callable[[], Budget | None], kind: type[Grant]) -> None:
    """A run grants what needs no more answers itself; any other grant is open until it is asked."""
    with virtual_time() as time:
        grant = grant_of(budget())
        assert (type(grant), grant.is_open) == (kind, kind is not Run)
        assert grant.ask()
        grant.sleep()
        assert time.slept[-1] == 1


def test_within_stop_on_the_grant_waits_when_it_is_asked() -> None:
    """The loop has nothing left to wait for then."""
    with virtual_time() as time, stop_on(threading.Event()):
        grant = grant_of(None)
        assert (type(grant), grant.is_open) == (InterruptibleGrant, True)
        assert (grant.ask(), time.slept) == (True, [1])
        grant.sleep()
        assert (time.slept, grant.delay) == ([1], 0)


@pytest.mark.parametrize("budget", [lambda: Remote(True), lambda: Remote(False), Known], ids=["yes", "no", "late"])
def test_a_settled_grant_keeps_no_error_alive(budget: Callable[[], Budget]) -> None:
    """An error leads to frames, which hold the grant: together they would be a circle."""
    collect_leftovers()
    gc.disable()
    try:
        with virtual_time():
            error = Busy()
            alive = weakref.ref(error)
            grant = grant_of(budget(), error)
            grant.ask()
            del error
            assert alive() is None
    finally:
        gc.enable()
