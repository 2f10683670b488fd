"""The programs that a newcomer writes first: what each executes on a real server, counted there."""

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
import requests
import tenacity

from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Seen
from forbear_testkit.examples.load import load
from forbear_testkit.examples.service import LOST, Service
from forbear_testkit.observe.listening import listening_as_ever

__all__ = ["listening_as_ever"]

_FIXTURES = load("tests_with_fixtures")
test_a_short_outage_is_survived = _FIXTURES.test_a_short_outage_is_survived
test_without_retries_the_outage_shows = _FIXTURES.test_without_retries_the_outage_shows


def test_decorated_functions_read_again_and_order_once() -> None:
    """GETs are repeated after a lost response, sync and async; the POST whose response is lost is executed once."""
    program = load("decorated_httpx")
    with Service(lambda _: {"cents": 250, "count": 7, "number": "1"}) as shop, virtual_time():
        shop.fail(503, LOST)
        assert program.price(shop.url, "tea") == 250
        shop.fail(503, LOST)
        assert asyncio.run(program.stocks(shop.url, "tea")) == [7]
        assert (shop.count("GET /prices"), shop.count("GET /stock")) == (2, 2)
        shop.fail(LOST)
        with pytest.raises(httpx.ReadError) as raised:
            program.order(shop.url, "tea")
        assert shop.count("POST /orders") == 1
    assert "may have been executed" in raised.value.__notes__[0]


def test_an_installed_client_cancels_again_and_books_once() -> None:
    """A DELETE is repeated after a lost response, a POST is not; a refused POST has the note in its status error."""
    program = load("httpx_install")
    with Service(lambda _: {"number": "1"}) as hotel, virtual_time() as time, program.connect(hotel.url) as client:
        hotel.fail(503, LOST)
        program.cancel(client, "1")
        assert (hotel.count("DELETE"), len(time.slept)) == (2, 2)
        hotel.fail(LOST)
        with pytest.raises(httpx.ReadError) as raised:
            program.book(client, "12")
        assert hotel.count("POST") == 1
    assert "may have been executed" in raised.value.__notes__[0]


def test_blocks_are_repeated() -> None:
    """Each block runs until its batch is there; the other batches are sent once."""
    program = load("block_form")
    with Service(lambda request: len(request.body)) as store, virtual_time():
        store.fail(503, LOST)
        assert program.push(store.url, ["a", "b"]) == 4
        assert (store.count("PUT /batches/0"), store.count("PUT /batches/1")) == (2, 1)
        store.fail(LOST)
        asyncio.run(program.apush(store.url, 2, "c"))
        assert store.count("PUT /batches/2") == 2


def _with_tenacity(program: Any) -> Any:
    """Return the function of a program with the decorator of tenacity in its docstring, but for the real waits."""
    options = re.search(r"@retry\((.*?)\n    \)", program.__doc__, re.DOTALL)
    assert options is not None
    names = vars(tenacity) | {"requests": requests, "logging": logging, "is_pending": program.is_pending}
    return eval(f"retry({options[1]} sleep=lambda _: None)", names)(program.rate.__wrapped__)


def _next_of(script: Iterator[float], _: Seen) -> float:
    return next(script)


@pytest.mark.parametrize(
    ("faults", "rates", "result", "sent"),
    [
        ([LOST, LOST], [1.5], 1.5, 3),
        ([], [0, 0, 2.5], 2.5, 3),
        ([LOST] * 5, [1.5], None, 4),
        ([], [0] * 5, None, 4),
    ],
    ids=["lost", "pending", "lost for good", "pending for good"],
)
def test_a_migrated_function_does_what_it_did(
    faults: list[str], rates: list[float], result: float | None, sent: int
) -> None:
    """With tenacity and with forbear, the same responses lead to the same value after as many requests."""
    program = load("from_tenacity")
    for function in (_with_tenacity(program), program.rate):
        script = iter([*[rates[0]] * len(faults), *rates])
        with Service(partial(_next_of, script)) as bank, virtual_time():
            bank.fail(*faults)
            assert function(bank.url, "eur") == result
            assert bank.count("GET /rates/eur") == sent


def test_retries_are_logged_counted_and_traced(caplog: pytest.LogCaptureFixture) -> None:
    """Two retries are two warnings, one metric of two, and one span; the server has executed two requests."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from prometheus_client import CollectorRegistry

    program, metrics, traces, spans = load("observed"), CollectorRegistry(), TracerProvider(), InMemorySpanExporter()
    traces.add_span_processor(SimpleSpanProcessor(spans))
    program.observe(traces, metrics)
    with Service(lambda _: "hello") as service, virtual_time():
        service.fail(503, LOST)
        assert json.loads(program.read(service.url)) == "hello"
        assert service.count("GET /") == 2
    warnings = [record for record in caplog.records if record.name == "forbear" and record.levelname == "WARNING"]
    assert len(warnings) == 2
    assert "attempt 1 failed (HTTPStatusError" in warnings[0].message
    assert metrics.get_sample_value("forbear_retries_total", {"operation": "observed.read"}) == 2
    assert [span.attributes["forbear.attempts"] for span in spans.get_finished_spans() if span.attributes] == [3]
