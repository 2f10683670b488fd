"""The three ways to run an update: sync, in asyncio and in trio; each plays the same store in virtual time."""

from collections.abc import Callable
from typing import NamedTuple

import anyio

from forbear.core.backoff import Constant
from forbear.core.limits import Limits
from forbear.core.report import Report, report
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.policy import Policy
from forbear.read_modify_write import aupdate, update
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.read_modify_write.store import Doc, Down, Refused, Store, is_conflict, mine, modify


def judge(error: Exception) -> Verdict:
    """Return the verdict on an error of the store."""
    if isinstance(error, Refused):
        return NOT_EXECUTED
    return TRANSIENT if isinstance(error, Down) else PERMANENT


POLICY = Policy(judge, Limits(attempts=5, timeout=60), Constant(1))


class Outcome(NamedTuple):
    """The end of an update: its value or its error with its report, and how long it waited."""

    value: Doc | None
    error: Exception | None
    report: Report | None
    slept: list[float]


class Driver(NamedTuple):
    """One of the ways; `backend` is None for sync code."""

    name: str
    backend: str | None

    def __call__(
        self,
        store: Store,
        *,
        read: Callable[[], Doc] | None = None,
        modify: Callable[[Doc], Doc] = modify,
        write: Callable[[Doc], Doc | None] | None = None,
        conflict: Callable[[Exception], bool] = is_conflict,
        mine: Callable[[Doc], bool] | None = mine,
        policy: Policy = POLICY,
    ) -> Outcome:
        """Make the change, with the store's own functions where no others are given."""
        value, error = None, None
        run = self._sync if self.backend is None else self._async
        with virtual_time(0) as clock:
            try:
                value = run(read or store.read, modify, write or store.write, conflict, mine, policy)
            except Exception as raised:
                error = raised
        return Outcome(value, error, report(error), clock.slept)

    def _sync(
        self,
        read: Callable[[], Doc],
        modify: Callable[[Doc], Doc],
        write: Callable[[Doc], Doc | None],
        conflict: Callable[[Exception], bool],
        mine: Callable[[Doc], bool] | None,
        policy: Policy,
    ) -> Doc:
        return update(read=read, modify=modify, write=write, conflict=conflict, mine=mine, policy=policy)

    def _async(
        self,
        read: Callable[[], Doc],
        modify: Callable[[Doc], Doc],
        write: Callable[[Doc], Doc | None],
        conflict: Callable[[Exception], bool],
        mine: Callable[[Doc], bool] | None,
        policy: Policy,
    ) -> Doc:
        async def aread() -> Doc:
            return read()

        async def awrite(doc: Doc) -> Doc | None:
            return write(doc)

        async def run() -> Doc:
            return await aupdate(read=aread, modify=modify, write=awrite, conflict=conflict, mine=mine, policy=policy)

        assert self.backend is not None
        return anyio.run(run, backend=self.backend)


DRIVERS = [Driver("sync", None), Driver("asyncio", "asyncio"), Driver("trio", "trio")]
