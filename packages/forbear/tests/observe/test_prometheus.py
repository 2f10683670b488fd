"""Metrics as Prometheus scrapes them."""

from prometheus_client import CollectorRegistry, generate_latest

from forbear.observe.prometheus import Prometheus
from forbear_testkit.observe.runs import SECRET, gives_up, recovers, run


def test_what_is_counted() -> None:
    """Failures by kind, retries and their waits, recoveries, give-ups by reason, attempts by outcome."""
    registry = CollectorRegistry()
    count = Prometheus(registry)
    recovers(count)
    gives_up(count)
    run("value", on_event=count)

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"operation": "fetch", **labels})

    assert sample("forbear_failures_total", error="Busy") == 4
    assert sample("forbear_retries_total") == 3
    assert sample("forbear_delay_seconds_sum") == 3
    assert sample("forbear_delay_seconds_bucket", le="0.5") == 0
    assert sample("forbear_delay_seconds_bucket", le="1.0") == 3
    assert sample("forbear_recoveries_total") == 1
    assert sample("forbear_give_ups_total", reason="attempts") == 1
    assert sample("forbear_attempts_sum", outcome="recovered") == 3
    assert sample("forbear_attempts_sum", outcome="gave up") == 2
    assert SECRET not in generate_latest(registry).decode()
