"""Observe one run: all clients under the storm's hand, shifted time, and what was sent and executed."""

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType

from forbear.adapters import check_at_least, check_positive_seconds
from forbear_audit.storm.clocks import restore_lost, shift_time
from forbear_audit.storm.counting import EffectCount, Effects
from forbear_audit.storm.faults import PlannedFault
from forbear_audit.storm.run_record import RunRecord, record_calls
from forbear_audit.storm.shifted_time import RealWaits, ShiftedTime
from forbear_audit.storm.wire import over_aiohttp, over_grpc, over_httpcore, over_redis, over_urllib3


@dataclass(frozen=True, slots=True)
class StormLimits:
    """The limits of a run: `attempts` for one call (default 10), and `minutes` of virtual time (default 10).

    ValueError or TypeError for anything but positive numbers.
    """

    attempts: int = 10
    minutes: float = 10

    def __post_init__(self) -> None:
        check_at_least("attempts", self.attempts, 1, what="the most attempts of one call")
        check_positive_seconds("minutes", self.minutes)


@contextmanager
def observing(
    fault: PlannedFault | None,
    limits: StormLimits,
    extra: Iterable[Effects] = (),
    clean: RunRecord | None = None,
    test: CodeType | None = None,
) -> Generator[RunRecord]:
    """Observe the block as one run, with at most one fault, and fill in the record at its end.

    `clean` is the record of a clean run, for a run with a fault. `test` is the code of the test function. Errors of the
    block pass through.
    """
    waits = RealWaits() if clean is None else clean.time.waits
    clock = ShiftedTime(None if fault is None else waits)
    limit = (0 if clean is None else len(clean.calls)) + 100 + 10 * limits.attempts
    record = RunRecord(fault, time=clock, limit=limit, seconds=limits.minutes * 60, test=test)
    clock.on_sleep, clock.on_stuck = record.check, record.end_stuck
    count = EffectCount(record, extra)
    if fault is None:
        record.on_begin = count.sample
    try:
        with ExitStack() as undo:
            restore_lost()
            for library in (over_httpcore, over_urllib3, over_aiohttp, over_redis):
                library.install(undo)
            over_grpc.install(undo, record)
            undo.enter_context(shift_time(clock))
            undo.enter_context(record_calls(record))
            yield record
            record.on_begin(None)
    except BaseException as error:
        record.outcome, record.error = "failed", error
        raise
    finally:
        record.ends.release()
        record.elapsed = clock.elapsed
        record.effects = count.after()
