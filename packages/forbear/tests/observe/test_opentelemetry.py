"""Spans and metrics as the real SDK exports them, in memory."""

from collections.abc import Iterator

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from forbear.clients.httpx import RetryTransport
from forbear.core.attempt import Attempt
from forbear.core.events import Recovered
from forbear.observe.opentelemetry import OpenTelemetry
from forbear.services import rfc9110
from forbear.testing import virtual_time
from forbear_testkit.observe.runs import SECRET, gives_up, recovers, run

SECOND = 1_000_000_000


class Collected:
    """A listener, and what it exports."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.listener = OpenTelemetry(self.tracers, self.meters)

    @property
    def span(self) -> ReadableSpan:
        """The one span that was made."""
        (span,) = self.exporter.get_finished_spans()
        return span

    def metrics(self) -> dict[str, list[tuple[dict[str, object], float]]]:
        """Attributes and values (of histograms the sums) by the name of the instrument."""
        found: dict[str, list[tuple[dict[str, object], float]]] = {}
        data = self.reader.get_metrics_data()
        assert data is not None
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                assert scope.scope.name == "forbear"
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        assert isinstance(point, NumberDataPoint | HistogramDataPoint)
                        value = point.value if isinstance(point, NumberDataPoint) else point.sum
                        found.setdefault(metric.name, []).append((dict(point.attributes or {}), value))
        return found


@pytest.fixture
def collected() -> Iterator[Collected]:
    """Providers of its own for each test; the process has none."""
    collected = Collected()
    yield collected
    collected.tracers.shutdown()
    collected.meters.shutdown()


def events(span: ReadableSpan) -> list[tuple[int, dict[str, object]]]:
    """When the attempts of a span ended, in seconds after its start, and what is said of them."""
    assert span.start_time is not None
    return [((event.timestamp - span.start_time) // SECOND, dict(event.attributes or {})) for event in span.events]


def test_a_recovery_is_a_span_with_an_event_for_each_attempt(collected: Collected) -> None:
    """Dated back to the start of the run, each event to the end of its attempt."""
    recovers(collected.listener)
    span = collected.span
    assert span.name == "fetch"
    assert dict(span.attributes or {}) == {"forbear.operation": "fetch", "forbear.attempts": 3}
    assert span.status.status_code is StatusCode.UNSET
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 2 * SECOND
    assert [event.name for event in span.events] == ["attempt"] * 3
    assert events(span) == [
        (
            0,
            {
                "forbear.attempt": 1,
                "error.type": "Busy",
                "exception.message": "no answer from https://h/o?sig=[redacted]",
                "forbear.delay": 1,
            },
        ),
        (1, {"forbear.attempt": 2, "error.type": "Busy", "exception.message": "down", "forbear.delay": 1}),
        (2, {"forbear.attempt": 3}),
    ]


@pytest.mark.parametrize("name", ["maybe_done", "settled", "billed"])
def test_a_late_success_says_what_is_special(collected: Collected, name: str) -> None:
    """An attribute of the span says what is true of it."""
    collected.listener(Recovered("fetch", 2, 1.0, (Attempt(1, "Busy", "down", 0.5, 0.5),), **{name: True}))
    assert dict(collected.span.attributes or {}) == {
        "forbear.operation": "fetch",
        "forbear.attempts": 2,
        f"forbear.{name}": True,
    }


def test_giving_up_is_an_error_with_its_reason(collected: Collected) -> None:
    """The status says which rule ended the run; no secret is in any of it."""
    gives_up(collected.listener)
    span = collected.span
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "limit of 2 attempts reached"
    assert dict(span.attributes or {}) == {
        "forbear.operation": "fetch",
        "forbear.attempts": 2,
        "forbear.reason": "attempts",
        "forbear.maybe_done": False,
        "forbear.vouched": False,
        "forbear.billed": False,
        "error.type": "Busy",
    }
    assert SECRET not in span.to_json()


def test_spans_are_children_of_the_current_one(collected: Collected) -> None:
    """So the retries of a request are seen where the request is handled."""
    with collected.tracers.get_tracer("app").start_as_current_span("handle") as parent:
        recovers(collected.listener)
    span = next(span for span in collected.exporter.get_finished_spans() if span.name == "fetch")
    assert span.parent == parent.get_span_context()


def test_a_run_that_succeeds_at_once_leaves_no_span(collected: Collected) -> None:
    """It costs nothing; what client made the request has a span of its own."""
    run("value", on_event=collected.listener)
    assert collected.exporter.get_finished_spans() == ()


def test_a_cancelled_run_leaves_nothing_open(collected: Collected) -> None:
    """Failures are counted; a span that was never begun need not be ended."""
    with pytest.raises(KeyboardInterrupt):
        run_until_interrupted(collected)
    assert collected.exporter.get_finished_spans() == ()
    assert collected.metrics()["forbear.retries"] == [({"forbear.operation": "fetch"}, 1)]


def run_until_interrupted(collected: Collected) -> None:
    """A failure, then Ctrl-C."""
    answers: list[BaseException] = [KeyboardInterrupt(), OSError("lost")]

    def fetch() -> None:
        raise answers.pop()

    policy = rfc9110.policy.with_on(OSError).replace(repeatable=True, on_event=collected.listener, name="fetch")
    with virtual_time():
        policy.call(fetch)


def test_requests_count_their_resends(collected: Collected) -> None:
    """By the conventions for HTTP: error.type is the status, and the resends are counted from the second attempt."""
    answers = [503, 429, 200]
    transport = httpx.MockTransport(lambda request: httpx.Response(answers.pop(0)))
    policy = rfc9110.policy.with_on_event(collected.listener)
    with virtual_time(), httpx.Client(transport=RetryTransport(policy, transport=transport)) as client:
        client.get(f"https://example.com/?sig={SECRET}")
    span = collected.span
    assert span.name == "GET"
    assert (span.attributes or {})["forbear.operation"] == "GET example.com"
    assert (span.attributes or {})["http.request.resend_count"] == 2
    assert [said.get("error.type") for _, said in events(span)] == ["503", "429", None]
    assert SECRET not in span.to_json()


def test_each_event_is_counted(collected: Collected) -> None:
    """Failures by kind, retries and their waits, attempts of runs, recoveries, give-ups by reason."""
    recovers(collected.listener)
    gives_up(collected.listener)
    fetch: dict[str, object] = {"forbear.operation": "fetch"}
    assert collected.metrics() == {
        "forbear.failures": [(fetch | {"error.type": "Busy"}, 4)],
        "forbear.retries": [(fetch, 3)],
        "forbear.delay": [(fetch, 3)],
        "forbear.attempts": [(fetch, 5)],
        "forbear.recoveries": [(fetch, 1)],
        "forbear.give_ups": [(fetch | {"forbear.reason": "attempts"}, 1)],
    }
