"""The judges find duplicates, endless retries and wrong results, and leave sound retries alone."""

import asyncio
import queue
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from functools import partial
from itertools import count
from threading import Event, Thread, Timer

import anyio
import httpx
import pytest
import requests
import tenacity

from forbear.clients.requests import RetryAdapter
from forbear_audit.storm import effects, shifted_time, storm
from forbear_cloud import Cloud
from forbear_testkit.testing.orders import OrdersServer, orders_server

_sleep = vars(time)["sleep"]
_number = count()


@pytest.fixture(scope="module")
def server() -> Generator[OrdersServer]:
    """Run a server for all tests of this module."""
    with orders_server() as server:
        yield server


Send = Callable[[str], object]


def post(url: str) -> None:
    """Send an order, once."""
    requests.post(f"{url}/orders", timeout=5).raise_for_status()


def get(url: str) -> None:
    """Fetch an order, once."""
    requests.get(f"{url}/orders/17", timeout=5).raise_for_status()


@tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(30), reraise=True)
def retried_post(url: str) -> None:
    """Send an order up to three times."""
    post(url)


@tenacity.retry(wait=tenacity.wait_fixed(30))
def endless_get(url: str) -> None:
    """Fetch an order until it works."""
    get(url)


@tenacity.retry(stop=tenacity.stop_after_attempt(30), reraise=True)
def many_gets(url: str) -> None:
    """Fetch an order up to 30 times, without a wait."""
    get(url)


def swallowing_get(url: str) -> None:
    """Take a broken response for an order without a number."""
    try:
        number = requests.get(f"{url}/orders/17", timeout=5).json()["id"]
    except (requests.RequestException, KeyError):
        number = 0
    assert number == 1


def trusting_get(url: str) -> None:
    """Take any response for an order."""
    assert requests.get(f"{url}/orders/17", timeout=5).json()["id"] == 1


def replacing_get(url: str) -> None:
    """Return the client's error, and raise another one later."""
    failed = None
    try:
        get(url)
    except requests.RequestException as error:
        failed = error
    if failed is not None:
        raise LookupError("no order")


def forgetful_get(url: str) -> None:
    """Replace the client's error."""
    try:
        get(url)
    except requests.RequestException:
        raise LookupError("no order") from None


def sound_get(url: str) -> None:
    """Fetch an order by forbear's own retries."""
    with requests.Session() as session:
        session.mount("http://", RetryAdapter())
        session.get(f"{url}/orders/17", timeout=5).raise_for_status()


@pytest.mark.parametrize(
    ("send", "kinds"),
    [
        (post, {"lost"}),
        (get, {"lost"}),
        (retried_post, {"duplicated"}),
        (endless_get, {"storm", "late"}),
        (many_gets, {"many", "early"}),
        (swallowing_get, {"silent"}),
        (trusting_get, {"broken", "lost"}),
        (replacing_get, {"wrong"}),
        (sound_get, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_kind_of_mistake_is_found(server: OrdersServer, send: Send, kinds: set[str]) -> None:
    """Each kind of mistake is found, with the rule, the place and the command that shows it again."""
    report = storm(lambda: send(server.url), effects=server.count)
    assert {finding.kind for finding in report.findings} == kinds
    for finding in report.findings:
        assert finding.site.rpartition(":")[0].endswith("tests/storm/test_judge.py")
        assert finding.reproduction == f"pytest '{finding.test}' --forbear-fault '{finding.fault}'"
    assert report.ok == (not kinds - {"lost", "early"})


def test_context_is_a_chain(server: OrdersServer) -> None:
    """An error raised `from None` while the injected one was handled still comes from it."""
    assert storm(lambda: forgetful_get(server.url), effects=server.count).ok


def test_an_unsafe_repeat_without_a_count_is_suspected(server: OrdersServer) -> None:
    """Without a count of effects, an unsafe call that is sent again is suspected; with one key for both it is not."""

    def keyed(key: Callable[[], str]) -> None:
        headers = {"Idempotency-Key": key()}
        for attempt in range(2):
            try:
                requests.post(f"{server.url}/orders", headers=headers, timeout=5).raise_for_status()
                break
            except requests.RequestException:
                if attempt:
                    raise

    def unkeyed() -> None:
        retried_post(server.url)

    def rekeyed() -> None:
        numbers = iter("12")
        for attempt in range(2):
            try:
                headers = {"Idempotency-Key": next(numbers)}
                requests.post(f"{server.url}/orders", headers=headers, timeout=5).raise_for_status()
                break
            except requests.RequestException:
                if attempt:
                    raise

    only = "POST /orders#1:lost"
    assert [finding.kind for finding in storm(unkeyed, only=only).findings] == ["suspected"]
    assert [finding.kind for finding in storm(rekeyed, only=only).findings] == ["rekeyed"]
    assert not storm(lambda: keyed(lambda: f"key {next(_number)}"), only=only).findings
    with effects(server.count):
        assert [finding.kind for finding in storm(unkeyed, only=only).findings] == ["duplicated"]


def test_embedded_cloud() -> None:
    """The embedded cloud counts its effects without being registered."""
    with Cloud() as cloud:
        cloud.store.create_bucket("bucket")

        @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
        def compose() -> None:
            target = f"{cloud.url}/upload/storage/v1/b/bucket/o?uploadType=media&name=object"
            requests.post(target, b"data", timeout=5).raise_for_status()

        report = storm(compose, faults=["lost"])
    assert report.findings[0].kind == "duplicated"
    assert "`storage.objects.insert bucket/object` rose by 2 instead of 1" in report.findings[0].text


def test_a_cache_that_the_first_run_fills(server: OrdersServer) -> None:
    """A call that only the first run makes is no reason not to judge the others."""
    token: list[int] = []

    def order() -> None:
        if not token:
            token.append(requests.get(f"{server.url}/token", timeout=5).json()["id"])
        retried_post(server.url)

    report = storm(order, effects=server.count, faults=["lost"])
    assert report.calls == ("POST /orders#1",)
    assert report.findings[0].kind == "duplicated"


def test_not_deterministic(server: OrdersServer) -> None:
    """A function that differs between its clean runs is not judged."""

    def unsteady() -> None:
        for _ in range(next(_number) % 2 + 1):
            get(server.url)

    (finding,) = storm(unsteady).findings
    assert finding.kind == "unstable"
    assert "two clean runs sent GET /orders/* (" in finding.text
    assert "tests/storm/test_judge.py:" in finding.text


def test_end_within_a_task_group(server: OrdersServer) -> None:
    """A run is ended within a task group too, whose error is a group."""

    async def endless() -> None:
        async with httpx.AsyncClient(timeout=5, verify=False) as client, anyio.create_task_group() as group:
            group.start_soon(fetch_until_it_works, client)

    async def fetch_until_it_works(client: httpx.AsyncClient) -> None:
        while (await client.get(server.url)).status_code == 503:
            pass

    report = storm(endless, only="GET /#1+:503")
    assert [finding.kind for finding in report.findings] == ["storm"]


def test_many_calls(server: OrdersServer) -> None:
    """A run may have as many calls as a clean one, and is ended only when it has many more."""

    def fetch() -> None:
        with httpx.Client(timeout=5, verify=False) as client:
            for _ in range(120):
                with suppress(httpx.HTTPError):
                    client.get(server.url)

    report = storm(fetch, attempts=1, only="GET /#120:refused")
    assert len(report.calls) == 120
    assert not report.findings


def test_a_sample_is_the_same_for_the_same_seed(server: OrdersServer) -> None:
    """A sample takes so many runs, the same for the same seed."""

    def both() -> None:
        get(server.url)
        post(server.url)

    first, again = (storm(both, effects=server.count, sample=3, seed=7) for _ in range(2))
    assert first.runs == again.runs == 3
    assert first == again


def test_waits_take_no_time(server: OrdersServer) -> None:
    """Waits of hours are skipped and seen on the clocks of the code under test, and real time is back afterwards."""
    began, seen = time.monotonic(), list[float]()

    def patient() -> None:
        start = time.monotonic(), time.time()
        vars(time)["sleep"](7200)
        seen.extend((time.monotonic() - start[0], time.time() - start[1]))
        get(server.url)

    storm(patient, faults=["refused"])
    assert all(7200 <= seconds < 7260 for seconds in seen)
    assert time.monotonic() - began < 3600
    assert vars(time)["sleep"] is _sleep


def test_waits_for_other_threads(server: OrdersServer) -> None:
    """A wait for what does not come because of a fault ends early; one that another thread ends takes its real time."""

    def fetch(results: queue.Queue[int]) -> None:
        with suppress(requests.RequestException):
            results.put(requests.get(server.url, timeout=5).json()["id"])

    def fetch_through_a_thread() -> None:
        results = queue.Queue[int]()
        Thread(target=fetch, args=(results,)).start()
        assert results.get(timeout=3600) == 1
        later = Event()
        Timer(0.05, later.set).start()
        assert later.wait(3600)

    began = time.monotonic()
    report = storm(fetch_through_a_thread, only="GET /#1:refused", minutes=100)
    assert [finding.kind for finding in report.findings] == ["wrong"]
    assert "Empty" in report.findings[0].text
    assert time.monotonic() - began < 600


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_waits_without_an_end(server: OrdersServer, monkeypatch: pytest.MonkeyPatch, in_a_loop: bool) -> None:
    """A run that waits for ever is ended, and that is a finding."""
    monkeypatch.setattr(shifted_time, "_STUCK", 0.3)

    def fetch_or_hang() -> None:
        if requests.get(server.url, timeout=5).status_code == 503:
            Event().wait()

    async def fetch_or_hang_in_a_loop() -> None:
        async with httpx.AsyncClient(timeout=5, verify=False) as client:
            response = await client.get(server.url)
        if response.status_code == 503:
            await asyncio.Event().wait()

    report = storm(fetch_or_hang_in_a_loop if in_a_loop else fetch_or_hang, only="GET /#1:503")
    assert [finding.kind for finding in report.findings] == ["late"]
    assert "waits for something that does not come" in report.findings[0].text


def test_time_of_a_server_in_the_loop(server: OrdersServer) -> None:
    """Timers of asyncio are skipped; with a server in the same event loop, timing is not judged."""

    async def get_until_it_works(*, serve: bool) -> None:
        inside = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) if serve else None
        async with inside or nullcontext(), httpx.AsyncClient(timeout=5, verify=False) as client:
            while (await client.get(server.url)).status_code == 503:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), 100)

    def kinds(*, serve: bool) -> list[str]:
        report = storm(partial(get_until_it_works, serve=serve), only="GET /#1+:503", attempts=3)
        return [finding.kind for finding in report.findings]

    assert kinds(serve=False) == ["storm", "late"]
    assert kinds(serve=True) == ["storm"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"faults": ["lots"]}, "`faults` must be of lost, refused, 503, 429, slow, cut; got 'lots'"),
        ({"attempts": 0}, "`attempts` must be 1 or more"),
        ({"minutes": 0}, "`minutes` must be positive"),
        ({"only": "POST:lost"}, "must be CALL#NUMBER:FAULT"),
        ({"sample": 0}, "`sample` must be 1 or more"),
    ],
)
def test_bad_options(server: OrdersServer, options: dict[str, object], text: str) -> None:
    """A bad option is an error that names it and its rule."""
    with pytest.raises(ValueError, match=text):
        storm(lambda: get(server.url), **options)  # type: ignore[arg-type]


def test_clean_errors_are_raised() -> None:
    """A function that fails without a fault raises its own error."""
    with pytest.raises(ZeroDivisionError):
        storm(lambda: 1 / 0)


def test_effects_must_be_a_function() -> None:
    """A number in place of a function is refused."""
    with pytest.raises(TypeError, match="`source` must be a function"), effects(3):  # type: ignore[arg-type]
        pass
