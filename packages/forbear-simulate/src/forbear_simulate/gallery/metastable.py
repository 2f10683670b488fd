"""Metastable failures: the retry example of HotOS '21, and the four retry experiments of OSDI '22."""

from collections.abc import Iterator

from forbear import Constant, Limits, Policy
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.gallery.studies import Comparison, Study
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

_AT_ONCE = Constant(0)
_STEP = 0.2  # seconds

_CAPACITY = 300
_DATABASE = Server(workers=15, time=15 / _CAPACITY, times="constant")
_ONCE_MORE = Policy(OSError, Limits(attempts=2, timeout=None), _AT_ONCE)

_LOAD = 0.38
"""The load of the OSDI experiments as a share of the full capacity; the source does not say it."""
_REPLICA = Server(workers=10, time=0.01, times="constant")
_FOUR_RESENDS = Policy(OSError, Limits(attempts=5, timeout=None), _AT_ONCE)


def outage_at(rate: float, duration: float = 220) -> TimeSeries:
    """Return the time series of the HotOS example at `rate` queries per second: ten seconds of outage begin at 20 s."""
    clients = Clients(arrivals="regular", rate=rate, attempt_timeout=1, policy=_ONCE_MORE)
    return simulate_cohort(Scenario(duration, _STEP, clients, _DATABASE, (Window("hold", 20, 10),)))


def goodput_after(lost: float, length: float, load: float = _LOAD) -> float:
    """Return the goodput 60 s after a trigger of the OSDI experiment, as a share of the load.

    The trigger takes the share `lost` of the processor away for `length` seconds. `load` is a share of the capacity.
    """
    rate = load * _REPLICA.capacity
    clients = Clients(arrivals="regular", rate=rate, attempt_timeout=3, policy=_FOUR_RESENDS)
    trigger = Window("slow", 20, length, factor=1 / (1 - lost))
    end = 20 + length + 60
    series = simulate_cohort(Scenario(end, _STEP, clients, _REPLICA, (trigger,)))
    return series.mean("successes", end - 10) / _STEP / rate


def _hotos() -> Iterator[Comparison]:
    vulnerable, stable = outage_at(280, 120), outage_at(140)
    offered = vulnerable.mean("first_attempts", 90) + vulnerable.mean("retries", 90)
    yield Comparison("goodput at 280 QPS before the outage", 280, _rate(vulnerable, 10, 20), 0.01, "QPS")
    yield Comparison("offered load at 280 QPS after it", 560, offered / _STEP, 0.01, "QPS")
    yield Comparison("goodput at 280 QPS after it", 0, _rate(vulnerable, 90), 1, "QPS")
    yield Comparison("goodput at 140 QPS after it, below the limit of 150", 140, _rate(stable, 200), 0.01, "QPS")
    above = outage_at(160, 120)
    yield Comparison("goodput at 160 QPS after it, above that limit", 0, _rate(above, 90), 1, "QPS")


def _osdi() -> Iterator[Comparison]:
    for text, lost, length, load, published in (
        ("10 s at -78 %: recovers", 0.78, 10, _LOAD, 1),
        ("10 s at -80 %: stays down", 0.80, 10, _LOAD, 0),
        ("9 s at -80 %: recovers", 0.80, 9, _LOAD, 1),
        ("10 s at -80 %, load -30 %: recovers", 0.80, 10, 0.7 * _LOAD, 1),
    ):
        yield Comparison(f"{text}; goodput of the load", published, goodput_after(lost, length, load), 0.02)


def _rate(series: TimeSeries, start: float, end: float | None = None) -> float:
    return series.mean("successes", start, end) / series.step


HOTOS_2021 = Study(
    "hotos-2021",
    "HotOS '21: one retry keeps a database down after the outage has ended",
    "N. Bronson, A. Aghayev, A. Charapko, T. Zhu: Metastable Failures in Distributed Systems, HotOS '21, section 2.1",
    "A database that serves 300 QPS works well at 280 QPS. An outage of ten seconds, and one retry after a timeout of "
    "one second, hold it at 560 QPS, with almost no goodput. Below 150 QPS it recovers by itself.",
    "The paper has these figures in its text. We know them from two independent summaries of section 2.1; almost no "
    "goodput counts as 0 here.",
    "280, 160 and 140 regular calls per second. A FIFO queue without bound stands before 300 QPS of constant work. The "
    "network holds requests for ten seconds, and work whose client gave up is still done.",
    _hotos,
)

OSDI_2022 = Study(
    "osdi-2022",
    "OSDI '22: two points of a trigger, or one second of it, decide between recovery and a lasting failure",
    "L. Huang and others: Metastable Failures in the Wild, OSDI '22; github.com/lexiangh/Metastability, "
    "Retry_Metastability",
    "The size and length of a trigger decide whether a service recovers from it. Less load averts the failure.",
    "The README of Retry_Metastability names the four experiments and how each one ends. Timeout (3 s) and resends (4, "
    "at once) are those of its experiments.sh. Goodput is 1 where the service recovers, otherwise 0.",
    "These are relations, not figures of one machine. The load as a share of the capacity is not published. We chose "
    f"{_LOAD}; the four relations hold from 0.37 to 0.385. The trigger makes all work slower.",
    _osdi,
)
