"""From audit to proof: a storm proves findings of each rule that it can prove, at the places that the audit reports."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.cli.storm_plan import storm_plan
from forbear_audit.storm.faults import PROVABLE, PlannedFault
from forbear_audit.storm.judge import judge
from forbear_audit.storm.observe import StormLimits, observing
from forbear_audit.storm.places import StormPlan
from forbear_audit.storm.run_record import RunRecord, StormEnded
from forbear_audit.storm.verdicts import ReachedPlaces, verdicts_of
from forbear_testkit.testing.orders import OrdersServer, orders_server

CODE = """\
import time
import requests, stamina, tenacity
from requests.adapters import HTTPAdapter, Retry

def send(url):
    return requests.get(url, timeout=5)

@tenacity.retry(wait=tenacity.wait_random_exponential(max=60), retry=tenacity.retry_if_exception_type(OSError))
def endless(url):
    return send(url)

@tenacity.retry(
    wait=tenacity.wait_fixed(200), stop=tenacity.stop_after_attempt(5), retry=tenacity.retry_if_exception_type(OSError)
)
def hours(url):
    return send(url)

def swallowed(url):
    deadline = time.monotonic() + 60
    for _ in range(3):
        try:
            return send(url)
        except requests.ConnectionError:
            if time.monotonic() > deadline:
                break
            time.sleep(1)
    raise RuntimeError("failed")

def hasty(url):
    for _ in range(5):
        response = requests.get(url, timeout=5)
        if response.status_code == 429:
            time.sleep(1)
            continue
        return response

@stamina.retry(on=requests.ConnectionError, attempts=3, timeout=60)
def outer(url):
    return inner(url)

@stamina.retry(on=requests.ConnectionError, attempts=3, timeout=60)
def inner(url):
    return send(url)

@stamina.retry(on=requests.ConnectionError, attempts=4, timeout=60)
def order(url):
    return requests.post(url)

session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=Retry(2, backoff_factor=1, allowed_methods=None)))

def book(url):
    return session.post(url)

def harmless(url):
    while True:
        try:
            return requests.get(url, timeout=5)
        except FileNotFoundError:
            time.sleep(1)
"""
EXPECTED = {
    ("endless", "UNBOUNDED"): "proved",
    ("hours", "NO-DEADLINE"): "proved",
    ("swallowed", "LOST-CAUSE"): "proved",
    ("hasty", "NO-DEADLINE"): "not shown",
    ("hasty", "RETRY-AFTER"): "proved",
    ("outer", "NESTED"): "proved",
    ("order", "UNSAFE"): "proved",
    ("", "UNSAFE"): "proved",
    ("", "NO-DEADLINE"): "not shown",
    ("harmless", "UNBOUNDED"): "not shown",
}
"""The verdict for each function and rule; "" stands for the policy of the session, outside of functions."""


@pytest.fixture
def server() -> Iterator[OrdersServer]:
    """A server that counts orders."""
    with orders_server() as server:
        yield server


def observed(function: Callable[[], object], server: OrdersServer, fault: PlannedFault | None = None) -> RunRecord:
    """Call the function once, in a run of a storm."""
    with suppress(Exception, StormEnded), observing(fault, StormLimits(), [server.count]) as seen:
        function()
    return seen


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the code, in whose folder the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(CODE)
    spec = importlib.util.spec_from_file_location("shop", "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def plan(shop: Any, tmp_path: Path) -> StormPlan:
    """The plan of the code."""
    findings = audit(["shop.py"], settings=AuditSettings(select=tuple(PROVABLE))).findings
    return StormPlan(storm_plan(findings).places, tmp_path)


def test_faults_are_those_of_the_places(shop: Any, plan: StormPlan, server: OrdersServer) -> None:
    """Each call gets the faults of its places that make a difference; lasting ones begin at the first from a line."""

    def calls() -> None:
        shop.hasty(server.url)
        shop.hasty(server.url)
        shop.order(server.url)

    clean = observed(calls, server)
    lasting = ["GET /#1+:lost", "GET /#1+:refused", "GET /#1+:503", "GET /#1+:slow"]
    order = ["POST /#1:lost", "POST /#1:cut"]  # no slow one, as there is no timeout
    planned = [str(fault) for fault in plan.faults(clean.calls)]
    assert planned == ["GET /#1:429", *lasting, "GET /#2:429", *order]
    assert StormPlan((), plan.folder).faults(clean.calls) == []


def test_every_rule_is_proved(shop: Any, plan: StormPlan, server: OrdersServer) -> None:
    """Each rule has a place that a storm proves; a loop that does no harm is reached and not shown."""
    results: list[dict[str, object]] = []
    names = ("endless", "hours", "swallowed", "hasty", "outer", "order", "book", "harmless")
    for name in names:
        call = partial(getattr(shop, name), server.url)
        clean = observed(call, server)
        reached = ReachedPlaces(plan, clean)
        for fault in plan.faults(clean.calls):
            run = observed(call, server, fault)
            reached.add(fault, judge(name, clean, run, StormLimits(), nested=reached.has("NESTED", fault)))
        results.append({"plan": reached.as_dict()})

    lines = CODE.splitlines()

    def function_at(place: tuple[int, int] | None) -> str:
        return "" if place is None else lines[place[0] - 1].removeprefix("def ").partition("(")[0]

    verdicts = verdicts_of(plan, results)
    places = [(function_at(place.function), place.rule) for place in plan.places]
    assert {p: v.verdict for p, v in zip(places, verdicts, strict=True)} == EXPECTED
    assert {rule for (_, rule), verdict in EXPECTED.items() if verdict == "proved"} == set(PROVABLE)
