"""The time of a run: what is skipped, what takes real time, and what tests themselves have patched."""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Event, Thread
from typing import Any

import aiohttp
import backoff
import httpx
import pytest
import requests
import trio

from forbear_audit.storm import storm
from forbear_audit.storm.clocks import FAKES, restore_lost
from forbear_audit.storm.shifted_time import REAL
from forbear_testkit.testing.orders import OrdersHandler, OrdersServer, orders_server

PAUSE = 0.06
"""The real seconds that work takes: more than an event loop waits for a result that clean runs never had."""


@pytest.fixture(scope="module")
def server() -> Generator[OrdersServer]:
    """Run a server for all tests of this module; GET /slow has a body that pauses."""
    with orders_server() as server:
        server.RequestHandlerClass = PausingHandler
        yield server


class PausingHandler(OrdersHandler):
    """Sends the body of /slow in two parts."""

    def do_GET(self) -> None:  # noqa: N802 - a name of the standard library
        if not self.path.startswith("/slow"):
            super().do_GET()
            return
        BaseHTTPRequestHandler.send_response(self, 200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"ab")
        self.wfile.flush()
        REAL["sleep"](PAUSE)
        self.wfile.write(b"cd")


def fetch(url: str) -> None:
    """Fetch an order, up to twice, with a wait of a minute between."""
    for attempt in range(2):
        try:
            requests.get(f"{url}/orders", timeout=5).raise_for_status()
            return
        except requests.RequestException:
            if attempt:
                raise
            vars(time)["sleep"](60)


async def afetch(url: str) -> None:
    """Do the same in an asyncio loop."""
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        for attempt in range(2):
            try:
                (await client.get(f"{url}/orders")).raise_for_status()
                return
            except httpx.HTTPError:
                if attempt:
                    raise
                await vars(asyncio)["sleep"](60)


def test_a_patch_within_a_test_outlives_no_run(
    server: OrdersServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patch that is undone after the run brings back a function that is harmless, and that goes with the next run."""
    (tmp_path / "storm_lazily.py").write_text("from time import sleep, monotonic\n")
    patches: list[pytest.MonkeyPatch] = []
    monkeypatch.syspath_prepend(tmp_path)
    modules: list[Any] = []

    def patched() -> None:
        sys.modules.pop("storm_lazily", None)
        modules.append(__import__("storm_lazily"))
        assert modules[-1].sleep is FAKES["sleep"]
        patches.append(pytest.MonkeyPatch())
        patches[-1].setattr(time, "sleep", id)
        patches[-1].setattr(threading.Condition, "wait", threading.Condition.notify)
        fetch(server.url)

    def undone() -> int:
        while patches:
            patches.pop().undo()
        return 0

    storm(patched, effects=undone, only="GET /orders#1:lost")  # effects are counted after a run, as fixtures end
    assert len(modules) == 3
    assert vars(time)["sleep"] is FAKES["sleep"]
    FAKES["sleep"](0)
    assert REAL["monotonic"]() <= FAKES["monotonic"]() <= REAL["monotonic"]()
    restore_lost()
    assert vars(time)["sleep"] is REAL["sleep"]
    assert threading.Condition.wait.__code__.co_filename == threading.__file__
    assert modules[-1].sleep is REAL["sleep"]
    assert modules[-1].monotonic is REAL["monotonic"]


def test_patches_of_fixtures_stay(server: OrdersServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code under test sees the functions that a fixture has put in place, and they are there afterwards."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time", lambda: 1000.0)

    def timed() -> None:
        fetch(server.url)
        assert vars(time)["time"]() == 1000.0

    storm(timed, only="GET /orders#1:lost")
    assert slept == [60]
    assert time.time() == 1000.0


async def to_thread(url: str) -> None:
    """Wait for a thread that works for a while."""
    await asyncio.wait_for(asyncio.to_thread(REAL["sleep"], PAUSE), 5)


async def slow_body(url: str) -> None:
    """Read a body that pauses, by httpx."""
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        assert (await client.get(f"{url}/slow")).content in {b"abcd", b"Service Unavailable (injected by forbear)"}


async def slow_body_of_aiohttp(url: str) -> None:
    """Read a body that pauses, by aiohttp."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session, session.get(f"{url}/slow") as sent:
        assert await sent.read() in {b"abcd", b"Service Unavailable (injected by forbear)"}


async def subprocess(url: str) -> None:
    """Wait for a process."""
    process = await asyncio.create_subprocess_exec("sleep", str(PAUSE))
    assert await asyncio.wait_for(process.wait(), 5) == 0


@pytest.mark.parametrize("work", [to_thread, slow_body, slow_body_of_aiohttp, subprocess])
def test_a_loop_waits_for_real_work(server: OrdersServer, work: Callable[[str], Awaitable[None]]) -> None:
    """No timer of asyncio comes early while there is work that ends in real time, with a fault or without."""

    async def both() -> None:
        await afetch(server.url)
        await work(server.url)

    began = time.monotonic()
    report = storm(both, only="GET /orders#1:503")
    assert report.runs == 1
    assert not report.findings
    assert time.monotonic() - began < 30


def test_trio_waits_for_a_body(server: OrdersServer) -> None:
    """The same holds in trio."""

    async def read() -> None:
        async with httpx.AsyncClient(timeout=5, verify=False) as client:
            assert (await client.get(f"{server.url}/slow")).content == b"abcd"

    report = storm(lambda: trio.run(read), only="GET /slow#1:429")
    assert [finding.kind for finding in report.findings] == ["silent"]


def polled_process() -> None:
    """Poll a process until it ends."""
    process, end = Popen(["sleep", str(PAUSE)]), time.monotonic() + 1
    while process.poll() is None and time.monotonic() < end:
        vars(time)["sleep"](0.02)
    assert process.poll() == 0


def polled_flag() -> None:
    """Poll a flag that another thread sets."""
    done = Event()

    def work() -> None:
        REAL["sleep"](PAUSE)
        done.set()

    Thread(target=work).start()
    for _ in range(20):
        if done.is_set():
            return
        vars(time)["sleep"](0.02)
    raise AssertionError("not set")


def waited_process() -> None:
    """Wait for a process that does not end in time."""
    process = Popen(["sleep", "60"])
    with suppress(TimeoutExpired):
        process.wait(timeout=PAUSE)
    process.kill()
    process.wait(timeout=5)


@pytest.mark.parametrize("work", [polled_process, polled_flag, waited_process])
def test_sleep_waits_for_real_work(server: OrdersServer, work: Callable[[], None]) -> None:
    """`time.sleep` waits in a loop that polls real work, and is skipped between attempts."""

    def both() -> None:
        fetch(server.url)
        work()

    began = time.monotonic()
    report = storm(both, only="GET /orders#1:503")
    assert report.runs == 1
    assert not report.findings
    assert time.monotonic() - began < 30


def test_all_clocks_agree(server: OrdersServer) -> None:
    """The clocks in nanoseconds move on by a skipped wait as those in seconds do."""
    moved: list[tuple[float, float]] = []
    names = ("monotonic", "time", "perf_counter")

    def timed() -> None:
        clocks = [(vars(time)[name], vars(time)[f"{name}_ns"]) for name in names]
        began = [(seconds(), nanoseconds()) for seconds, nanoseconds in clocks]
        vars(time)["sleep"](300)
        for (seconds, nanoseconds), (first, second) in zip(clocks, began, strict=True):
            moved.append((seconds() - first, (nanoseconds() - second) / 1e9))
        fetch(server.url)

    storm(timed, only="GET /orders#1:lost")
    assert len(moved) == 9
    assert all(300 <= value < 360 for pair in moved for value in pair)


@backoff.on_exception(backoff.constant, requests.RequestException, interval=20, jitter=None, max_time=60)
def limited(url: str) -> None:
    """Fetch for up to a minute, by backoff, which reads datetime.now()."""
    requests.get(f"{url}/orders", timeout=5).raise_for_status()


def limited_by_date(url: str) -> None:
    """Do the same by hand."""
    end = datetime.now(UTC) + timedelta(seconds=60)
    while True:
        try:
            requests.get(f"{url}/orders", timeout=5).raise_for_status()
            return
        except requests.RequestException:
            if datetime.now(UTC) > end:
                raise
            vars(time)["sleep"](20)


@pytest.mark.parametrize("work", [limited, limited_by_date])
def test_dates_move_on(server: OrdersServer, work: Callable[[str], None]) -> None:
    """A limit by datetime.now() ends a loop, and dates are real ones again afterwards."""
    real, kinds = datetime, list[bool]()

    def dated() -> None:
        kinds.append(isinstance(real.now(UTC), datetime) and type(datetime(2020, 1, 1, tzinfo=UTC)) is real)
        work(server.url)

    assert not storm(dated, only="GET /orders#1+:503").findings
    assert kinds == [True] * 3
    assert datetime is real
