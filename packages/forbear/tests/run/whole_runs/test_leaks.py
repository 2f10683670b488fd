"""With the garbage collector off, nothing that a run touched outlives the caller: there are no reference cycles."""

import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import anyio
import pytest
from anyio.lowlevel import checkpoint

from forbear.core.report import report
from forbear.policy import Policy
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Busy


class Local:
    """Stands for what a function has in its local variables."""


Refs = list["weakref.ref[object]"]


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Watched(Busy):
    """An error that notes that it lives."""

    def __init__(self, refs: Refs) -> None:
        super().__init__("lost")
        refs.append(weakref.ref(self))


def fail(refs: Refs, failures: int) -> str:
    """Fail so many times with a local object in the frame, then succeed."""
    local = Local()
    refs.append(weakref.ref(local))
    if len(refs) <= 2 * failures:
        raise Watched(refs)
    return "done"


async def afail(refs: Refs, failures: int) -> str:
    """As `fail`, in a coroutine."""
    await checkpoint()
    return fail(refs, failures)


def _decorated(policy: Policy, refs: Refs, failures: int) -> object:
    return policy(fail)(refs, failures)


def _called(policy: Policy, refs: Refs, failures: int) -> object:
    return policy.call(fail, refs, failures)


def _block(policy: Policy, refs: Refs, failures: int) -> object:
    for attempt in policy:
        with attempt:
            return fail(refs, failures)
    raise AssertionError


async def _adecorated(policy: Policy, refs: Refs, failures: int) -> object:
    return await policy(afail)(refs, failures)


async def _acalled(policy: Policy, refs: Refs, failures: int) -> object:
    return await policy.acall(afail, refs, failures)


async def _ablock(policy: Policy, refs: Refs, failures: int) -> object:
    async for attempt in policy:
        async with attempt:
            return await afail(refs, failures)
    raise AssertionError


def dead(refs: Refs) -> bool:
    """Return whether there was something, and nothing of it is left."""
    return bool(refs) and all(ref() is None for ref in refs)


FORMS = {"decorated": _decorated, "called": _called, "block": _block}
AFORMS = {"decorated": _adecorated, "called": _acalled, "block": _ablock}
endings = pytest.mark.parametrize("failures", [0, 2, 99], ids=["success", "recovery", "giving-up"])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@endings
def test_sync_runs_leave_no_cycle(form: Callable[[Policy, Refs, int], object], failures: int) -> None:
    """No local of the function, no error of any attempt."""
    refs: Refs = []
    with virtual_time():
        with suppress(Busy):
            form(BUSY, refs, failures)
        assert dead(refs)


@pytest.mark.parametrize("form", AFORMS.values(), ids=AFORMS)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("attempt_timeout", [None, 9], ids=["plain", "attempt-timeout"])
@endings
def test_async_runs_leave_no_cycle(
    form: Callable[[Policy, Refs, int], Awaitable[object]], backend: str, attempt_timeout: float | None, failures: int
) -> None:
    """The same in coroutines, while their event loop is still running."""

    async def main() -> None:
        refs: Refs = []
        with suppress(Busy):
            await form(BUSY.with_attempt_timeout(attempt_timeout), refs, failures)
        assert dead(refs)

    with virtual_time():
        anyio.run(main, backend=backend)


def test_the_report_keeps_nothing_alive() -> None:
    """It holds texts and numbers only, so it may be kept for long."""
    refs: Refs = []
    found = None
    with virtual_time():
        try:
            BUSY.call(fail, refs, 99)
        except Busy as error:
            found = report(error)
    assert found is not None
    assert dead(refs)
