"""Observe one run: all clients under the storm's hand, shifted time, and what was sent and executed."""

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType

from forbear.adapters import check_at_least, check_positive_seconds
from forbear_audit.storm.clocks import restore_lost, shift_time
from forbear_audit.storm.counting import EffectCount, Effects
from forbear_audit.storm.faults import PlannedFault
from forbear_audit.storm.run_record import RunRecord, SentCall, record_calls
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


@dataclass(slots=True)
class Observation:
    """The record of one run. `outcome` is "passed", "failed" or "skipped", and `error` is that of the test.

    `effects` has how often each effect occurred, by its source. `elapsed` is in virtual seconds, `ended` says why the
    storm ended the run, and `judged` is false if timing means nothing because a server shared the event loop. `waits`
    has what the run waited for in real time. `swallowed` is true if the code went on after the storm had ended it.
    `test` is the code of the test function.
    """

    fault: PlannedFault | None
    calls: list[SentCall] = field(default_factory=list)
    outcome: str = "passed"
    error: BaseException | None = None
    injected: list[BaseException] = field(default_factory=list)
    effects: dict[str, Counter[str]] = field(default_factory=dict)
    elapsed: float = 0
    ended: str | None = None
    judged: bool = True
    swallowed: bool = False
    waits: RealWaits = field(default_factory=RealWaits)
    test: CodeType | None = None

    def signature(self) -> tuple[str, Counter[tuple[str, str]]]:
        """Return what must be the same in two clean runs: the outcome, and the calls from each place."""
        return self.outcome, self.sent()

    def sent(self) -> Counter[tuple[str, str]]:
        """Return how often each call was sent from each place of the user's code."""
        return Counter((call.label, call.site) for call in self.calls)


@contextmanager
def observing(
    fault: PlannedFault | None,
    limits: StormLimits,
    extra: Iterable[Effects] = (),
    clean: Observation | None = None,
    test: CodeType | None = None,
) -> Generator[Observation]:
    """Observe the block as one run, with at most one fault, and fill in the observation at its end.

    `clean` is the record of a clean run, for a run with a fault. `test` is the code of the test function. Errors of the
    block pass through.
    """
    observation = Observation(fault, test=test)
    waits = RealWaits() if clean is None else clean.waits
    clock = ShiftedTime(None if fault is None else waits)
    expected = 0 if clean is None else len(clean.calls)
    record = RunRecord(
        clock, fault, limit=expected + 100 + 10 * limits.attempts, seconds=limits.minutes * 60, test=test
    )
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
            yield observation
            record.on_begin(None)
    except BaseException as error:
        observation.outcome, observation.error = "failed", error
        raise
    finally:
        record.ends.release()
        observation.swallowed = record.ends.found
        observation.calls, observation.injected, observation.ended = record.calls, record.injected, record.ended
        observation.elapsed, observation.judged, observation.waits = clock.elapsed, clock.judged, clock.waits
        observation.effects = count.after()
