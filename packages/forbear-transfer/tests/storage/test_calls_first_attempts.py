"""Budgets that count first attempts, in transfers: nothing is sent without leave, and every attempt ends."""

from pathlib import Path

import pytest

import forbear
from forbear import Constant
from forbear.budgets import Budget
from forbear.core.verdict import TRANSIENT
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.run.budgets import ONCE, Closed, Noted
from forbear_transfer import Settings, cp
from forbear_transfer.storage.calls import Retries, Sent

POLICY = cloud_storage.policy.with_backoff(Constant(0))
MIB = 1024 * 1024


def settings(cloud: Cloud, budget: Budget, policy: forbear.Policy = POLICY) -> Settings:
    """Return the settings of a client of the cloud under this budget."""
    return Settings(endpoint=cloud.url, policy=policy.with_budget(budget))


@pytest.mark.parametrize("size", [10, 20 * MIB], ids=["small", "large"])
@pytest.mark.parametrize("source", ["file", "object"])
def test_nothing_is_sent_without_leave(cloud: Cloud, tmp_path: Path, size: int, source: str) -> None:
    """Each item fails with Throttled, and the cloud sees no request."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    cloud.store.put("bkt", "a", b"x" * size)
    seen = len(cloud.requests)
    here, there = (str(path), "gs://bkt/b") if source == "file" else ("gs://bkt/a", str(tmp_path / "b"))
    summary = cp(here, there, settings=settings(cloud, Budget(Closed())))
    assert (summary.failed, len(cloud.requests)) == (1, seen)
    assert str(summary.failures[0].error).startswith("Throttled: the retry budget refused the first attempt")


@pytest.mark.parametrize("size", [10, 20 * MIB], ids=["small", "large"])
def test_every_attempt_is_counted_and_ends(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """Up and down, through failures: as many first attempts as successes, and none is under way in the end."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    budget = Noted()
    cloud.fault(Fault.status(503, times=2))
    with virtual_time():
        up = cp(str(path), "gs://bkt/a", settings=settings(cloud, budget))
        cloud.fault(Fault.truncate(5, operation="storage.objects.get"))
        down = cp("gs://bkt/a", str(tmp_path / "b"), settings=settings(cloud, budget))
    assert (up.done, down.done) == (1, 1)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()
    assert budget.active == 0
    assert budget.log.count("take") == 3
    assert budget.log.count("release") == budget.log.count("admit") + 3


def test_a_host_has_its_own_budget(cloud: Cloud, tmp_path: Path) -> None:
    """A budget per host counts by the endpoint."""
    (tmp_path / "a").write_bytes(b"x")
    budget = Budget.per_host(Noted)
    cp(str(tmp_path / "a"), "gs://bkt/a", settings=settings(cloud, budget))
    used = budget.of(cloud.url.removeprefix("http://"), "cloud_storage")
    assert isinstance(used, Noted)
    assert used.log[:3] == ONCE


@pytest.mark.anyio
async def test_progress_returns_what_a_retry_took_once() -> None:
    """Two parts of a transfer after one retry: the first gives its cost back, the second makes a deposit."""
    budget = Budget.aws()
    assert budget.take()
    assert budget.take()
    left = budget._state[0]
    retries = Retries(POLICY.with_budget(budget), Sent("PUT", "gs://bkt/a"), "upload")
    retries.begin()
    await retries.after(OSError("broken"), TRANSIENT)
    for _ in range(2):
        retries.begin()
        retries.progressed()
    assert budget._state[0] - left == 1_000_000
