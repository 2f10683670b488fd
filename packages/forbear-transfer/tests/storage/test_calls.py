"""Patience: a policy's limits hold while nothing comes across, and begin anew when something does."""

import pytest

import forbear
from forbear.core.events import Scheduled
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.run.budget import Budget
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_testkit.transfer.uploads import metered
from forbear_transfer.errors import HttpError
from forbear_transfer.progress import forward
from forbear_transfer.storage.calls import Retries, Sent

pytestmark = pytest.mark.anyio

ERROR = OSError("broken")
POLICY = cloud_storage.policy
SENT = Sent("PUT", "gs://bkt/a")


async def test_it_waits_as_the_policy_says() -> None:
    """Longer each time, and tells the listener."""
    with virtual_time(seed=7) as time, metered() as told:
        patience = Retries(POLICY.with_on_event(forward), SENT, "upload")
        for _ in range(4):
            await patience.after(ERROR, TRANSIENT)
    assert [2**n <= each <= 2 ** (n + 1) for n, each in enumerate(time.slept)] == [True] * 4
    assert told.retries == 4


async def test_it_ends_with_a_report() -> None:
    """The error is the last one, as it was raised."""
    with virtual_time(seed=7) as time:
        patience = Retries(POLICY, SENT, "upload")

        async def for_ever() -> None:
            while True:
                await patience.after(OSError("broken"), TRANSIENT)

        with pytest.raises(OSError, match="broken") as caught:
            await for_ever()
    assert time.elapsed <= 600
    tried = forbear.report(caught.value)
    assert tried is not None
    assert tried.operation == "upload"
    assert (tried.method, tried.resource, tried.attempts[-1].status) == ("PUT", "gs://bkt/a", None)


async def test_progress_begins_it_anew() -> None:
    """With two attempts, every failure after progress is the first one."""
    with virtual_time(seed=7):
        patience = Retries(POLICY.with_attempts(2), SENT, "upload")
        for _ in range(5):
            await patience.after(OSError("passing"), TRANSIENT)
            patience.progressed()
        await patience.after(OSError("passing"), TRANSIENT)
        with pytest.raises(OSError, match="again"):
            await patience.after(OSError("again"), TRANSIENT)


async def test_a_permanent_error_is_raised_at_once() -> None:
    """A permanent error is raised unchanged, and has no report if it is the first."""
    with virtual_time() as time, pytest.raises(OSError, match="for good") as caught:
        await Retries(POLICY, SENT, "upload").after(OSError("for good"), PERMANENT)
    assert time.slept == []
    assert forbear.report(caught.value) is None


async def test_the_servers_word_is_obeyed() -> None:
    """Not earlier than it asked."""
    with virtual_time(seed=7) as time:
        await Retries(POLICY, SENT, "upload").after(ERROR, Verdict(Kind.TRANSIENT, retry_after=30))
    assert time.slept[0] >= 30


async def test_progress_earns_what_retries_spend() -> None:
    """The policy's budget is shared with all other requests."""
    budget = Budget.brooker(capacity=1, deposit=0.5)
    patience = Retries(POLICY.with_budget(budget), SENT, "upload")
    with virtual_time(seed=7):
        await patience.after(OSError("first"), TRANSIENT)
        with pytest.raises(OSError, match="second"):
            await patience.after(OSError("second"), TRANSIENT)
        patience.progressed()
        patience.progressed()
        await patience.after(OSError("third"), TRANSIENT)


async def test_switched_off_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORBEAR_DISABLED holds for transfers, too."""
    with forbear.disabled(), pytest.raises(OSError, match="broken"):
        await Retries(POLICY, SENT, "upload").after(ERROR, TRANSIENT)


def test_the_listener_hears_of_retries_alone() -> None:
    """Other events are none of its business."""
    with metered() as told:
        forward(Scheduled("upload", 2, 0.0, 1.0, forbear.events.Attempt(1, "OSError", "x", 0.0)))
    assert told.retries == 1


@pytest.mark.parametrize(("method", "shown"), [("GET", "id-1"), ("PUT", "[redacted]")])
async def test_a_response_has_its_status_and_its_ids(method: str, shown: str) -> None:
    """But the id of a PUT is the key to its upload session."""
    error = HttpError("upload", 503, headers={"x-guploader-uploadid": "id-1"})
    with virtual_time(), pytest.raises(HttpError) as caught:
        await Retries(POLICY.with_attempts(1), Sent(method, "gs://bkt/a"), "upload").after(error, TRANSIENT)
    tried = forbear.report(caught.value)
    assert tried is not None
    assert (tried.attempts[0].status, tried.attempts[0].request_ids) == (503, (("x-guploader-uploadid", shown),))
