"""`storm()`: a storm for one function, without pytest."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from forbear.adapters import check_at_least
from forbear_audit.storm.counting import Effects
from forbear_audit.storm.faults import FAULTS, PlannedFault, parse_fault
from forbear_audit.storm.judge import StormFinding, judge, plan, unstable
from forbear_audit.storm.observe import StormLimits, observing
from forbear_audit.storm.run_record import RunRecord, StormEnded
from forbear_audit.storm.wire.over_grpc import watch_channels

watch_channels()  # here, so that channels that are made before the first run are known


@dataclass(frozen=True, slots=True)
class StormReport:
    """The result of a storm: its `findings`, how many `runs` had a fault, and the `calls` of a clean run.

    Example: see `storm`.
    """

    test: str
    findings: tuple[StormFinding, ...]
    runs: int
    calls: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether nothing but information was found."""
        return all(finding.is_note for finding in self.findings)


def storm(
    function: Callable[[], object] | Callable[[], Awaitable[object]],
    *,
    effects: Effects | None = None,
    faults: Iterable[str] = FAULTS,
    attempts: int = 10,
    minutes: float = 10,
    sample: int | None = None,
    seed: int = 0,
    only: str | None = None,
) -> StormReport:
    """Call `function` twice clean, then once for each of its calls and faults, and return what is wrong.

    If the first two clean runs differ, a third one must be like the second: the first may have filled a cache.
    `function` takes no arguments; a coroutine function runs in a new asyncio loop each time. `effects` returns what the
    server has executed so far; the embedded cloud and Valkey are counted without it. `faults` limits the faults to
    these names. More than `attempts` for one call are a storm, more than `minutes` of virtual time are late. `sample`
    takes so many of the runs at random, by `seed` (None, the default: all). `only` is one fault, such as
    "POST /orders#1:lost".

    The error of a clean run is raised. ValueError for an unknown fault or a limit that is not positive.

    >>> import httpx
    >>> def load():
    ...     forbear.retry(httpx.HTTPError, attempts=3).call(httpx.get, cloud.url + "/storage/v1/b/my-bucket")
    >>> report = storm(load, faults=["lost", "503"])
    >>> report.calls, report.runs, report.findings
    (('GET /storage/v1/b/my-bucket#1',), 4, ())
    """
    limits = StormLimits(attempts, minutes)
    allowed = check_faults(faults)
    name = getattr(function, "__qualname__", repr(function))
    extra = () if effects is None else (effects,)

    def run(fault: PlannedFault | None, clean: RunRecord | None = None) -> RunRecord:
        seen = RunRecord(fault)
        try:
            with observing(fault, limits, extra, clean) as seen:
                result = function()
                if inspect.isawaitable(result):
                    asyncio.run(_await(result))
        except BaseException as error:
            ended = seen.ended is not None and isinstance(error, (StormEnded, BaseExceptionGroup))
            if fault is None or not (ended or isinstance(error, Exception)):
                raise
        return seen

    clean, again = run(None), run(None)
    if clean.signature() != again.signature():  # such as a token that is fetched once, and kept
        clean, again = again, run(None)
    labels = tuple(f"{call.label}#{call.number}" for call in clean.calls)
    if clean.signature() != again.signature():
        return StormReport(name, (unstable(name, differs(clean, again)),), 0, labels)
    clean.time.waits.add(again.time.waits)
    planned = [parse_fault(only)] if only else choose_faults(clean, allowed, sample, f"{seed}:{name}")
    findings = [finding for fault in planned for finding in judge(name, clean, run(fault, clean), limits)]
    return StormReport(name, tuple(findings), len(planned), labels)


async def _await(result: Awaitable[object]) -> None:
    await result


def check_faults(faults: Iterable[str]) -> frozenset[str]:
    """Return the names of faults as a set; ValueError for an unknown one, TypeError for no list."""
    if isinstance(faults, str) or not isinstance(faults, Iterable):
        raise TypeError(f"`faults` must be a list of names, such as ['lost', '503']; got {faults!r}")
    names = frozenset(faults)
    if unknown := sorted(names - set(FAULTS)):
        raise ValueError(f"`faults` must be of {', '.join(FAULTS)}; got {unknown[0]!r}")
    return names


def choose_faults(
    clean: RunRecord,
    allowed: frozenset[str],
    sample: int | None,
    seed: str,
    faults: Iterable[PlannedFault] | None = None,
) -> list[PlannedFault]:
    """Return the faults to try after this clean run, of `faults` or of all (None): all, or a `sample` of so many."""
    planned = [fault for fault in (plan(clean) if faults is None else faults) if fault.name in allowed]
    if sample is None:
        return planned
    check_at_least("sample", sample, 1, what="a number of runs")
    return planned if sample >= len(planned) else random.Random(seed).sample(planned, sample)


def differs(clean: RunRecord, again: RunRecord) -> str:
    """Return the sentence on two clean runs that were not the same."""
    if clean.outcome != again.outcome:
        return f"not deterministic: one clean run {clean.outcome}, the other {again.outcome}"
    first, second = clean.sent(), again.sent()
    label, site = next(iter((first - second) + (second - first)))
    counts = f"{first[label, site]} and {second[label, site]} times"
    return f"not deterministic: two clean runs sent {label} ({site}) {counts}"
