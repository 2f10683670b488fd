"""An error that a signal handler raises in a sync client is for the caller: the request is not sent again.

A handler that raises a TimeoutError is how programs limit the time of sync code. Libraries take it for their own.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
import requests
import urllib3

import forbear
from forbear.clients.botocore import install
from forbear.clients.google import retry_for
from forbear.clients.httpx import RetryTransport
from forbear.clients.httpx2 import RetryTransport as RetryTransport2
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Answer, Wire, reply

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""An interrupted library may leave a socket open."""


class TimeIsUp(Exception):
    """An error that no library knows."""


READING = {("socket", "readinto"), ("httpcore._backends.sync", "read"), ("httpcore2._backends.sync", "read")}
"""The modules and functions in which the libraries wait for a response. Others of such names may hide any error."""
RAISED = (TimeoutError, OSError, ConnectionResetError, TimeIsUp)


@pytest.fixture(params=RAISED, ids=lambda kind: kind.__name__)
def alarm(request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """A function that interrupts the main thread; from another one, while it reads: clients pass over failed writes.

    The alarm strikes again as long as the main thread reads. An error at the end of a read may fall into code that
    hides it, and nothing else would end the next read.
    """
    main = threading.main_thread().ident or 0
    lock, is_over = threading.Lock(), threading.Event()

    def handle(*_: object) -> None:
        raise request.param("the time is up")

    def is_reading() -> bool:
        frame = sys._current_frames()[main]
        return (frame.f_globals.get("__name__"), frame.f_code.co_name) in READING

    def strike() -> None:
        with lock:
            if not is_over.is_set():  # without the handler, the signal would end this process
                signal.pthread_kill(main, signal.SIGUSR1)

    def ring() -> None:
        while not is_over.wait(0.001):
            if is_reading():
                strike()
                rounds = 100
                while rounds and is_reading() and not is_over.wait(0.001):
                    rounds -= 1

    def interrupt() -> None:
        if threading.get_ident() == main:
            strike()
        else:
            threading.Thread(target=ring, daemon=True).start()

    before = signal.signal(signal.SIGUSR1, handle)
    yield interrupt
    with lock:
        is_over.set()
    signal.signal(signal.SIGUSR1, before)
    gc.collect(1)


def _httpx(url: str) -> object:
    with httpx.Client(transport=RetryTransport(transport=httpx.HTTPTransport(verify=False))) as client:
        return client.get(url)


def _httpx2(url: str) -> object:
    with httpx2.Client(transport=RetryTransport2(transport=httpx2.HTTPTransport(verify=False))) as client:
        return client.get(url)


def _requests(url: str) -> object:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter())
        return session.get(url)


def _urllib3(url: str) -> object:
    with urllib3.PoolManager(retries=Retry()) as pool:
        return pool.request("GET", url)


def _botocore(url: str) -> object:
    return install(aws.client("dynamodb", url)).get_item(**aws.KEY)


CLIENTS = (_httpx, _httpx2, _requests, _urllib3, _botocore)
MOMENTS: dict[str, Callable[[Callable[[], None]], Answer]] = {
    "before the response": lambda alarm: Answer(first=alarm, end="stall"),
    "in its body": lambda alarm: Answer(reply(200, b"every", length=1_000_000, end="stall").data, "stall", then=alarm),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("get", CLIENTS, ids=lambda get: get.__name__)
def test_a_read_is_not_sent_again(get: Callable[[str], object], moment: str, alarm: Callable[[], None]) -> None:
    """Although a repeat would be harmless, and most of these errors look like a broken connection."""
    with Wire(MOMENTS[moment](alarm)) as wire, virtual_time() as time:
        with pytest.raises(Exception, match=r".*"):
            get(wire.url)
        assert len(wire.seen) <= 1  # the server notes a request once it has raised the alarm
    assert time.slept == []


def test_a_call_of_google_is_not_sent_again(alarm: Callable[[], None]) -> None:
    """The handler's own error passes."""
    calls: list[object] = []

    def send(request: object) -> None:
        calls.append(request)
        alarm()

    with virtual_time(), pytest.raises(RAISED, match="the time is up"):
        retry_for("google.storage.v2.Storage/GetObject")(send)({})
    assert len(calls) == 1


def test_an_unsafe_call_of_aws_is_left_in_doubt(alarm: Callable[[], None]) -> None:
    """It may have been executed: the error has a report, and a function around it is not called again."""

    @forbear.retry(Exception, attempts=3)
    def work() -> object:
        return client.update_item(**aws.COUNT)

    with Wire(Answer(first=alarm, end="stall")) as wire, virtual_time():
        client: Any = install(aws.client("dynamodb", wire.url))
        with pytest.raises(Exception, match=r".*") as caught:
            work()
        assert len(wire.seen) <= 1
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE
