"""The examples for HTTP: a web service, a task, a session, a download, and an IAM policy."""

import asyncio
import hashlib
import json
import socket
from pathlib import Path

import httpx
import pytest
import requests

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Seen
from forbear_testkit.examples.load import load
from forbear_testkit.examples.service import LOST, Service


class Shop:
    """A shop that drops duplicate orders by their key."""

    def __init__(self) -> None:
        self.orders: dict[str | None, str] = {}

    def __call__(self, request: Seen) -> object:
        if request.method == "GET":
            return {"cents": 250}
        self.orders.setdefault(request.header("idempotency-key"), json.loads(request.body)["item"])
        return {"item": self.orders[request.header("idempotency-key")]}


async def test_a_web_service_orders_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a refusal, a lost response and Retry-After, the shop gets one order, and its clients see no error."""
    import uvicorn

    shop = Shop()
    with Service(shop) as service, socket.create_server(("127.0.0.1", 0)) as listener, virtual_time() as time:
        monkeypatch.setenv("SHOP_URL", service.url)
        server = uvicorn.Server(uvicorn.Config(load("fastapi_httpx").app, log_config=None))
        serving = asyncio.create_task(server.serve([listener]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            service.fail(503, LOST)
            assert (await client.get("/prices/tea")).json() == {"cents": 250}
            assert time.slept[0] >= 7  # Retry-After
            service.fail(LOST, 503)
            ordered = await client.post("/orders/tea")
        server.should_exit = True
        await serving
    assert (ordered.status_code, ordered.json()) == (200, {"item": "tea"})
    assert (service.count("POST"), list(shop.orders.values())) == (2, ["tea"])


def test_a_task_charges_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task sends a charge again after 429, as the bank promises, but fails after a lost response."""
    with Service(lambda request: json.loads(request.body)) as bank, virtual_time() as time:
        monkeypatch.setenv("BANK_URL", bank.url)
        program = load("celery_charge")
        program.app.conf.task_always_eager = True
        bank.fail(429, 429)
        assert program.charge.delay("ada", 500).get() == {"customer": "ada", "cents": 500}
        assert [seconds >= 7 for seconds in time.slept] == [True, True]  # Retry-After
        bank.fail(LOST)
        lost = program.charge.delay("grace", 700)
        program.bank.close()
    assert lost.state == "FAILURE"
    assert isinstance(lost.result, requests.ConnectionError)
    assert [json.loads(request.body)["customer"] for request in bank.seen] == ["ada", "ada", "ada", "grace"]
    assert bank.count("POST /charges") == 2


def test_a_session_books_once() -> None:
    """A search by POST is sent again, as the program vouches; a booking whose response is lost is not."""
    program = load("requests_search")
    with Service(lambda request: ["12"] if "search" in request.line else "booked") as hotel, virtual_time():
        session = program.connect(hotel.url)
        hotel.fail(503, LOST)
        assert program.search(session, hotel.url, "Rome") == ["12"]
        assert program.book(session, hotel.url, "12") == "booked"
        hotel.fail(LOST)
        with pytest.raises(requests.ConnectionError) as raised:
            program.book(session, hotel.url, "12")
        session.close()
    assert "may have been executed" in raised.value.__notes__[0]
    assert hotel.count("POST /rooms/12/bookings") == 2
    assert hotel.count("POST /rooms/search") == 2


def test_a_download_is_whole(tmp_path: Path) -> None:
    """A download that breaks off twice continues where it stopped; no byte is requested twice."""
    program = load("aiohttp_download")
    content = bytes(range(256)) * 4096
    with Cloud() as cloud, virtual_time(seed=1):
        cloud.store.create_bucket("b")
        httpx.post(f"{cloud.url}/upload/storage/v1/b/b/o?uploadType=media&name=film", content=content)
        cloud.fault(Fault.truncate(300_000, operation="storage.objects.get", times=2))
        url = f"{cloud.url}/storage/v1/b/b/o/film?alt=media"
        digest = asyncio.run(program.download(url, tmp_path / "film"))
    assert digest == hashlib.sha256(content).hexdigest()
    assert (tmp_path / "film").read_bytes() == content
    gets = [request for request in cloud.requests if request.operation == "storage.objects.get"]
    assert [request.headers.get("range") for request in gets] == [None, "bytes=300000-1048575", "bytes=600000-1048575"]


def test_a_member_is_added_once() -> None:
    """Between a refusal, another writer and a lost response, each member is added once, and no other change is lost."""
    program = load("iam_edit")
    write = "cloudresourcemanager.projects.setIamPolicy"
    with Cloud() as cloud, requests.Session() as session, virtual_time():
        project = f"{cloud.url}/v1/projects/my-project"
        cloud.fault(Fault.status(503, operation=write, times=1))
        program.add_viewer(session, project, "user:ada@example.com")
        cloud.fault(Fault.reset(when="after", operation=write, times=1))
        policy = program.add_viewer(session, project, "user:grace@example.com")
    members = [member for binding in policy["bindings"] for member in binding["members"]]
    assert sorted(members) == ["user:ada@example.com", "user:grace@example.com"]
    assert cloud.effects.count(write) == 2
