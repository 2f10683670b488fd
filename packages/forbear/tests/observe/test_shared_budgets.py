"""The events of shared budgets: a line, an entry and a count each."""

import logging

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from forbear.cli.kit.output import EventPrinter
from forbear.core.events import BudgetDegraded, BudgetRestored
from forbear.observe.logging import Logging
from forbear.observe.opentelemetry import OpenTelemetry
from forbear.observe.prometheus import Prometheus
from forbear.observe.structlog import Structlog

NAME = "shared budget jobs"
EVENTS = BudgetDegraded(NAME, "the server closed the connection", 1.5), BudgetRestored(NAME, 20.25)


def test_a_lost_server_is_logged_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A lost server is a warning, its return is information."""
    caplog.set_level(logging.INFO, "forbear")
    for event in EVENTS:
        Logging()(event)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "shared budget jobs: the server closed the connection; it lives on its own credit, and asks again in 1.5 s",
        ),
        ("INFO", "shared budget jobs: the server answers again, after 20.2 s"),
    ]


def test_structlog_gets_the_values() -> None:
    """structlog gets the values."""
    with capture_logs() as entries:
        for event in EVENTS:
            Structlog()(event)
    lost = {"operation": NAME, "text": "the server closed the connection", "pause": 1.5}
    assert entries == [
        {"event": "budget degraded", "log_level": "warning", **lost},
        {"event": "budget restored", "log_level": "info", "operation": NAME, "elapsed": 20.25},
    ]


def test_metrics_count_by_the_name_of_the_budget() -> None:
    """Prometheus and OpenTelemetry count both by the name of the budget."""
    registry, reader = CollectorRegistry(), InMemoryMetricReader()
    meters = MeterProvider([reader])
    for listener in (Prometheus(registry), OpenTelemetry(meter_provider=meters)):
        for event in EVENTS:
            listener(event)
    for kind in ("degraded", "restored"):
        assert registry.get_sample_value(f"forbear_budgets_{kind}_total", {"operation": NAME}) == 1
    data = reader.get_metrics_data()
    assert data is not None
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    assert {metric.name for metric in metrics} == {"forbear.budgets_degraded", "forbear.budgets_restored"}
    meters.shutdown()


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`forbear run` prints a line each."""
    for event in EVENTS:
        EventPrinter(None)(event)
    assert capsys.readouterr().err.splitlines() == [
        "forbear: shared budget jobs: the server closed the connection; it asks again in 1.5 s",
        "forbear: shared budget jobs: the server answers again, after 20.2 s",
    ]
