"""Log, count and trace the retries of a program. Libraries: httpx, prometheus-client, OpenTelemetry.

`listen` says once, at the start, who is notified of all retries of the process.
"""

import sys

import httpx
from opentelemetry.trace import TracerProvider, get_tracer_provider
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server

import forbear
from forbear.observe import listen, logging, opentelemetry, prometheus


def observe(traces: TracerProvider, metrics: CollectorRegistry) -> None:
    """Send all retries to the logger `forbear`, to traces and to metrics."""
    listen(logging.Logging(), opentelemetry.OpenTelemetry(traces), prometheus.Prometheus(metrics))


@forbear.retry(on=forbear.transient)
def read(url: str) -> str:
    """Return the text at a URL."""
    response = httpx.get(url)
    response.raise_for_status()
    return response.text


if __name__ == "__main__":
    start_http_server(9000)
    observe(get_tracer_provider(), REGISTRY)
    print(read(sys.argv[1]))
