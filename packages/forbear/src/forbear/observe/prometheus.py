"""Count events as metrics of prometheus_client. Operations and error types are labels; texts are not."""

from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled, label_of
from forbear.observe.logging import ATTEMPTS, COUNTED, DELAY

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
except ImportError as error:
    raise ImportError(
        'forbear.observe.prometheus needs prometheus_client; install it with: pip install "forbear[prometheus]"'
    ) from error

_DELAYS = (0.01, 0.05, 0.1, 0.5, 1, 2, 4, 8, 16, 32, 64, 300)
_ATTEMPTS = (1, 2, 3, 4, 5, 8, 13, 21)
_LABELS: "dict[type[Event], str]" = {Failed: "error", GaveUp: "reason"}


class Prometheus:
    """A listener that counts events; make one for each `registry` (default: the process's own) and share it.

    `forbear_failures_total` (operation, error), `forbear_retries_total` (operation), `forbear_delay_seconds`
    (operation; a histogram of the waits), `forbear_recoveries_total` (operation), `forbear_give_ups_total` (operation,
    reason) and `forbear_attempts` (operation, outcome; a histogram of the attempts of each run).
    `forbear_would_stop_total` (operation) counts what `enforce="warn"` repeated. For shared budgets,
    `forbear_budgets_degraded_total` and `forbear_budgets_restored_total` (operation). Calls that succeed at
    once are not counted, and cost nothing. A request to a host that no service knows has only its method as the
    operation, since host names would make endless labels.

    >>> from prometheus_client import CollectorRegistry
    >>> from forbear.testing import Script
    >>> registry = CollectorRegistry()
    >>> forbear.retry(OSError, on_event=Prometheus(registry), name="load").call(Script(OSError, "done"))
    'done'
    >>> registry.get_sample_value("forbear_retries_total", {"operation": "load"})
    1.0
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"forbear_{name}", text, ("operation", *labels), buckets=buckets, registry=registry)

        self._counters: dict[type[Event], Counter] = {}
        for kind, (name, _, text) in COUNTED.items():
            labels = ("operation", _LABELS[kind]) if kind in _LABELS else ("operation",)
            self._counters[kind] = Counter(f"forbear_{name}", text, labels, registry=registry)
        self._delay = histogram("delay_seconds", DELAY, _DELAYS)
        self._attempts = histogram("attempts", ATTEMPTS, _ATTEMPTS, "outcome")

    def __call__(self, event: Event) -> None:
        """Add an event to the metrics: count a failure, a retry and its wait, or the end of a run and its attempts."""
        labels = [label_of(event.operation)]
        match event:
            case Failed():
                labels.append(event.name)
            case Scheduled():
                self._delay.labels(*labels).observe(event.delay)
            case Recovered():
                self._attempts.labels(*labels, "recovered").observe(event.attempt)
            case GaveUp():
                self._attempts.labels(*labels, "gave up").observe(event.report.count)
                labels.append(event.report.reason.code)
            case _:
                pass
        self._counters[type(event)].labels(*labels).inc()
