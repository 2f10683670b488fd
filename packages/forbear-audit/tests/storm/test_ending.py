"""Runs that do not end by themselves are ended: those that swallow their end, and those that wait for ever."""

import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any

import httpx
import pytest
import requests

from forbear_audit.storm import shifted_time, storm
from forbear_audit.storm.shifted_time import REAL
from forbear_testkit.testing.orders import OrdersServer, orders_server


@pytest.fixture(scope="module")
def server() -> Generator[OrdersServer]:
    """Run a server for all tests of this module."""
    with orders_server() as server:
        yield server


def fetch(url: str) -> None:
    """Fetch an order, once."""
    requests.get(f"{url}/orders", timeout=5).raise_for_status()


def bare(url: str) -> None:
    """Fetch until it works, and swallow everything else."""
    while True:
        try:
            requests.get(f"{url}/orders", timeout=5).raise_for_status()
            return
        except:  # noqa: E722 - the mistake to be found
            pass


def around(url: str) -> None:
    """Do the same around a function that does it already."""
    while True:
        try:
            bare(url)
            return
        except BaseException:
            continue


def sleeping(url: str) -> None:
    """Swallow the error of a wait too."""
    while True:
        with suppress(BaseException):
            try:
                requests.get(f"{url}/orders", timeout=5).raise_for_status()
                return
            except Exception:
                vars(time)["sleep"](1)


async def abare(url: str) -> None:
    """Swallow everything in a loop of asyncio."""
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        while True:
            try:
                (await client.get(f"{url}/orders")).raise_for_status()
                return
            except BaseException:
                continue


@pytest.mark.parametrize("work", [bare, around, sleeping, abare])
def test_a_run_ends_that_swallows_its_end(server: OrdersServer, work: Callable[[str], Any]) -> None:
    """A loop that swallows every error is ended, and a later run is not touched."""
    before = sys.gettrace(), sys.getprofile()
    with ThreadPoolExecutor(1) as pool:  # an error that a tracer raises may stay behind as the context of later ones
        report = pool.submit(storm, lambda: work(server.url), only="GET /orders#1+:refused", attempts=2).result()
    assert [(finding.kind, finding.rule) for finding in report.findings] == [
        ("storm", "UNBOUNDED"),
        ("late", "CATCH-ALL"),
    ]
    assert (sys.gettrace(), sys.getprofile()) == before
    assert storm(lambda: fetch(server.url), only="GET /orders#1:refused").ok


def test_only_the_first_endless_wait_takes_long(server: OrdersServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one wait without an end, later runs of the test are ended far earlier."""
    monkeypatch.setattr(shifted_time, "_STUCK", 0.2)
    monkeypatch.setattr(shifted_time, "_STUCK_AGAIN", 0.05)
    monkeypatch.setattr(shifted_time, "_PATIENCE", 0.01)
    waits: list[float] = []

    def hang() -> None:
        if requests.get(f"{server.url}/orders", timeout=5).status_code == 503:
            began = REAL["monotonic"]()
            try:
                Event().wait()
            finally:
                waits.append(REAL["monotonic"]() - began)

    report = storm(hang, faults=["503"])
    assert {finding.kind for finding in report.findings} == {"late"}
    assert len(waits) == 2
    assert waits[0] >= 0.2 > waits[1]
