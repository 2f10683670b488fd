"""Turn events into spans and metrics of the OpenTelemetry API; exporters are the application's.

A run's span is made when the run has ended, and dated back. So a run that succeeds at once costs nothing, a cancelled
run leaves no span open, and the listener keeps no state.
"""

from collections.abc import Iterable

from forbear.core.attempt import Attempt
from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled, label_of
from forbear.observe.logging import ATTEMPTS, COUNTED, DELAY, RECOVERED
from forbear.run.runtime import current

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ImportError(
        'forbear.observe.opentelemetry needs opentelemetry-api; install it with: pip install "forbear[opentelemetry]"'
    ) from error

_SCOPE = "forbear"
_STATUS = "HTTP "
_Attributes = dict[str, str | int | float | bool]


class OpenTelemetry:
    """A listener that makes a span for each run that failed at least once, with an event for each attempt, and counts.

    Spans are children of the current one. They have the attributes `forbear.operation`, `forbear.attempts`,
    `http.request.resend_count` (the retries, if an attempt failed with an HTTP status) and, after giving up,
    `error.type`, `forbear.reason`, `forbear.maybe_done`, `forbear.vouched` and `forbear.billed`. After a success they
    have `forbear.maybe_done`, `forbear.settled` and `forbear.billed` if true. Metrics, by `forbear.operation`:
    `forbear.failures` (and `error.type`), `forbear.retries`, `forbear.delay` (seconds waited), `forbear.attempts` (of
    each run), `forbear.recoveries`, `forbear.give_ups` (and `forbear.reason`), `forbear.would_stop`, and for
    shared budgets `forbear.budgets_degraded` and `forbear.budgets_restored`. For a request to a host that no service
    knows, metrics and span names have the method only. Providers are the process's own by default.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> from forbear.testing import Script
    >>> provider, exporter = TracerProvider(), InMemorySpanExporter()
    >>> provider.add_span_processor(SimpleSpanProcessor(exporter))
    >>> forbear.retry(OSError, on_event=OpenTelemetry(provider), name="load").call(Script(OSError, "done"))
    'done'
    >>> [(span.name, span.attributes["forbear.attempts"]) for span in exporter.get_finished_spans()]
    [('load', 2)]
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._counters = {
            kind: meter.create_counter(f"forbear.{name}", unit, text) for kind, (name, unit, text) in COUNTED.items()
        }
        self._delay = meter.create_histogram("forbear.delay", "s", DELAY)
        self._attempts = meter.create_histogram("forbear.attempts", "{attempt}", ATTEMPTS)

    def __call__(self, event: Event) -> None:
        """Add an event to the metrics; the last event of a run (`Recovered` or `GaveUp`) also makes the run's span."""
        operation: _Attributes = {"forbear.operation": label_of(event.operation)}
        why: _Attributes = {}
        match event:
            case Failed():
                why = {"error.type": _error_type(event.name)}
            case Scheduled():
                self._delay.record(event.delay, operation)
            case Recovered():
                self._attempts.record(event.attempt, operation)
                known: _Attributes = {f"forbear.{name}": True for name in RECOVERED if getattr(event, name)}
                self._span(event.operation, event.elapsed, event.failures, event.attempt, known, None)
            case GaveUp():
                report = event.report
                why = {"forbear.reason": report.reason.code}
                self._attempts.record(report.count, operation)
                last: _Attributes = {"error.type": _error_type(report.attempts[-1].error)}
                last |= {f"forbear.{name}": getattr(report, name) for name in ("maybe_done", "vouched", "billed")}
                self._span(event.operation, report.elapsed, report.attempts, report.count, why | last, report.text)
            case _:
                pass
        self._counters[type(event)].add(1, operation | why)

    def _span(
        self,
        operation: str,
        elapsed: float,
        failures: Iterable[Attempt],
        attempts: int,
        attributes: _Attributes,
        failure: str | None,
    ) -> None:
        ended = current.get().now()
        started = ended - elapsed
        span = self._tracer.start_span(label_of(operation), start_time=_nanoseconds(started))
        span.set_attributes({"forbear.operation": operation, "forbear.attempts": attempts, **attributes})
        for attempt in failures:
            values: _Attributes = {
                "forbear.attempt": attempt.number,
                "error.type": _error_type(attempt.error),
                "exception.message": attempt.text,
            }
            if attempt.delay is not None:
                values["forbear.delay"] = attempt.delay
            if attempt.error.startswith(_STATUS):
                span.set_attribute("http.request.resend_count", attempts - 1)
            span.add_event("attempt", values, timestamp=_nanoseconds(started + attempt.elapsed))
        if failure is None:
            span.add_event("attempt", {"forbear.attempt": attempts}, timestamp=_nanoseconds(ended))
        else:
            span.set_status(trace.StatusCode.ERROR, failure)
        span.end(_nanoseconds(ended))


def _error_type(error: str) -> str:
    """Return the `error.type` of the semantic conventions: "503" for "HTTP 503", any other name unchanged."""
    return error.removeprefix(_STATUS)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
