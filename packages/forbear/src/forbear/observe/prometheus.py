"""Count events as metrics of prometheus_client. Operations and error types are labels; texts are not."""

from forbear.core.events import (
    BudgetDegraded,
    BudgetRestored,
    Event,
    Failed,
    GaveUp,
    Recovered,
    Scheduled,
    WouldStop,
    label_of,
)
from forbear.observe.logging import reason

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
except ImportError as error:
    raise ImportError(
        'forbear.observe.prometheus needs prometheus_client; install it with: pip install "forbear[prometheus]"'
    ) from error

_DELAYS = (0.01, 0.05, 0.1, 0.5, 1, 2, 4, 8, 16, 32, 64, 300)
_ATTEMPTS = (1, 2, 3, 4, 5, 8, 13, 21)


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
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"forbear_{name}", text, ("operation", *labels), registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"forbear_{name}", text, ("operation", *labels), buckets=buckets, registry=registry)

        self._failures = counter("failures", "Failed attempts", "error")
        self._retries = counter("retries", "Retries")
        self._delay = histogram("delay_seconds", "Waits before retries", _DELAYS)
        self._recoveries = counter("recoveries", "Runs that worked after a failure")
        self._give_ups = counter("give_ups", "Runs that ended without success", "reason")
        self._attempts = histogram("attempts", "Attempts of runs that failed at least once", _ATTEMPTS, "outcome")
        self._would_stop = counter("would_stop", "Attempts repeated under enforce=warn")
        self._degraded = counter("budgets_degraded", "Shared budgets that lost their server")
        self._restored = counter("budgets_restored", "Shared budgets that have their server back")

    def __call__(self, event: Event) -> None:
        """Add an event to the metrics: count a failure, a retry and its wait, or the end of a run and its attempts."""
        operation = label_of(event.operation)
        match event:
            case Failed():
                self._failures.labels(operation, event.name).inc()
            case Scheduled():
                self._retries.labels(operation).inc()
                self._delay.labels(operation).observe(event.delay)
            case Recovered():
                self._recoveries.labels(operation).inc()
                self._attempts.labels(operation, "recovered").observe(event.attempt)
            case GaveUp():
                self._give_ups.labels(operation, reason(event)).inc()
                self._attempts.labels(operation, "gave up").observe(event.report.count)
            case WouldStop():
                self._would_stop.labels(operation).inc()
            case BudgetDegraded():
                self._degraded.labels(operation).inc()
            case BudgetRestored():
                self._restored.labels(operation).inc()
