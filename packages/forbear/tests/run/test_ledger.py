"""The ledger: what adapters sent in an attempt forbids the next one, whatever fails later (L1 to L3, L9, K3)."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.events import WouldStop
from forbear.run import ledger
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import AFORMS, FORMS

LOST, OK = Answer(end="close"), reply(200, b"{}")
POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
KEY = "charge-4711-2026"


class Broken(Exception):
    """The error of a function that shows nothing of what it has sent, as one while it parses."""


def new_client(**options: Any) -> httpx.Client:
    """Return a client with forbear's transport."""
    return httpx.Client(transport=RetryTransport(transport=httpx.HTTPTransport(verify=False), **options))


def new_async_client(**options: Any) -> httpx.AsyncClient:
    """Return an async client with forbear's transport."""
    return httpx.AsyncClient(transport=AsyncRetryTransport(transport=httpx.AsyncHTTPTransport(verify=False), **options))


def reason_of(error: BaseException) -> str:
    """Return the code and the words of the report on an error."""
    report = forbear.report(error)
    assert report is not None
    return f"{report.reason.code}: {report.text}"


def sent(
    work: Callable[[httpx.Client, str], object], *answers: Answer, policy: forbear.Policy = POLICY, **options: Any
) -> tuple[int, str]:
    """Run the work, which fails in the end, under a policy; return how much arrived, and why the run ended."""
    with Wire(*(answers or (OK,))) as wire, new_client(**options) as client, virtual_time():
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the reason is what counts
            policy.call(work, client, wire.url)
        return len(wire.seen), reason_of(caught.value)


def then_fail(method: str, **options: Any) -> Callable[[httpx.Client, str], object]:
    """Return work that sends a request through the adapter, and then fails by itself."""

    def work(client: httpx.Client, url: str) -> object:
        client.request(method, f"{url}/orders", **options)
        raise Broken

    return work


CASES: list[tuple[str, str, dict[str, Any], tuple[Answer, ...], int]] = [
    ("a read", "GET", {}, (OK,), 3),
    ("an absolute write", "PUT", {}, (OK,), 3),
    ("a POST", "POST", {}, (OK,), 1),
    ("L2 a version", "PUT", {"headers": {"If-Match": '"5"'}}, (OK,), 1),
    ("L3 must not exist yet", "PUT", {"headers": {"If-None-Match": "*"}}, (OK,), 1),
    ("refused", "POST", {}, (reply(400),), 3),
    ("maybe executed", "POST", {}, (reply(409),), 1),
    ("L9 failed and caught", "POST", {}, (reply(503),), 1),
    ("a large body", "POST", {"content": b"x" * 100_000}, (OK,), 1),
    ("a large absolute body", "PUT", {"content": b"x" * 100_000}, (OK,), 3),
    ("a stream", "POST", {"content": iter([b"x"])}, (OK,), 1),
]


@pytest.mark.parametrize(
    ("method", "options", "answers", "count"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_what_follows_a_request(method: str, options: dict[str, Any], answers: tuple[Answer, ...], count: int) -> None:
    """A request that worked and may not be repeated stops the run, though a ValueError shows nothing of it."""
    made, why = sent(then_fail(method, **options), *answers)
    assert made == count
    assert why.startswith("unsafe: " if count == 1 else "attempts: ")


def test_what_the_note_says() -> None:
    """The note names the request, that it has been executed, and the cure."""
    _, why = sent(then_fail("POST"))
    assert "/orders has been executed and must not be executed twice" in why
    assert 'say so: safe="POST http://127.0.0.1:' in why
    _, why = sent(then_fail("PUT", headers={"If-None-Match": "*"}))
    assert "has succeeded, and the next attempt would be in conflict with it" in why


@pytest.mark.parametrize("form", FORMS)
def test_every_sync_form(form: str) -> None:
    """L9: a POST whose failure was caught is seen, whatever fails then."""
    with Wire(LOST, OK) as wire, requests.Session() as session, virtual_time():
        session.mount("http://", RetryAdapter())

        def work() -> None:
            try:
                session.post(f"{wire.url}/orders", timeout=5)
            except requests.ConnectionError:
                session.get(f"{wire.url}/status", timeout=5)
            raise Broken

        with pytest.raises(Broken) as caught:
            FORMS[form](POLICY, work)
        assert [seen.method for seen in wire.seen] == ["POST", "GET"]
        assert reason_of(caught.value).startswith("unsafe")


async def in_task(post: Callable[[], Awaitable[object]]) -> None:
    """Post in a task."""
    await asyncio.create_task(forward(post))


async def forward(post: Callable[[], Awaitable[object]]) -> None:
    """Post."""
    await post()


async def in_gather(post: Callable[[], Awaitable[object]]) -> None:
    """Post beside something else."""
    await asyncio.gather(post(), forward(nothing))


async def nothing() -> None:
    """Do nothing."""


WAYS = [forward, in_task, in_gather]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("form", AFORMS)
def test_every_async_form(form: str, way: Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]) -> None:
    """A POST that a task of the attempt made counts; one of another run, at the same time, does not."""

    async def main(url: str) -> None:
        async with new_async_client() as client:
            failed = list[str]()

            async def other() -> None:
                failed.append("other")
                if len(failed) < 3:
                    raise Broken

            async def work() -> None:
                await way(lambda: client.post(f"{url}/orders"))
                raise Broken

            async def post() -> None:
                with pytest.raises(Broken) as caught:
                    await AFORMS[form](POLICY, work)
                assert reason_of(caught.value).startswith("unsafe")

            await asyncio.gather(post(), AFORMS[form](POLICY, other))
            assert len(failed) == 3

    with Wire(OK) as wire, virtual_time():
        asyncio.run(main(wire.url))
        assert len(wire.seen) == 1


def test_to_thread() -> None:
    """A thread with the attempt's context counts, and any other thread does not."""

    async def main(url: str, *, plain: bool) -> None:
        with new_client() as client:

            async def work() -> None:
                if plain:
                    thread = threading.Thread(target=client.post, args=(f"{url}/orders",))
                    thread.start()
                    thread.join()
                else:
                    await asyncio.to_thread(client.post, f"{url}/orders")
                raise Broken

            await POLICY(work)()

    for plain, count in ((False, 1), (True, 3)):
        with Wire(OK) as wire, virtual_time():
            with pytest.raises(Broken):
                asyncio.run(main(wire.url, plain=plain))
            assert len(wire.seen) == count


@pytest.mark.parametrize("form", AFORMS)
def test_l1_in_flight(form: str) -> None:
    """L1: the GET fails while the POST is in flight: its entry was made before its first byte was sent."""
    arrived = threading.Event()
    go_on = threading.Event()

    def hold() -> None:
        arrived.set()
        go_on.wait()

    async def main(url: str) -> None:
        async with new_async_client() as client:
            tasks = list[asyncio.Task[Any]]()

            async def fail() -> None:
                await asyncio.to_thread(arrived.wait)
                raise Broken

            async def work() -> None:
                tasks.append(asyncio.create_task(client.post(f"{url}/orders")))
                await asyncio.gather(tasks[-1], fail())

            with pytest.raises(Broken) as caught:
                await AFORMS[form](POLICY, work)
            assert reason_of(caught.value).startswith("unsafe: POST")
            go_on.set()
            await asyncio.gather(*tasks)

    with Wire(Answer(OK.data, first=hold)) as wire, virtual_time():
        asyncio.run(main(wire.url))
        assert len(wire.seen) == 1


@pytest.mark.parametrize("form", AFORMS)
def test_a_late_request_stops_the_next_attempt(form: str) -> None:
    """A task of a failed attempt that sends during the wait forbids the next attempt before it begins."""

    async def main(url: str) -> int:
        attempts = 0
        async with new_async_client() as client:
            tasks = list[asyncio.Task[Any]]()

            async def late() -> None:
                await has_failed.wait()
                await client.post(f"{url}/orders")

            async def work() -> None:
                nonlocal attempts
                attempts += 1
                tasks.append(asyncio.create_task(late()))
                raise Broken

            has_failed = asyncio.Event()
            policy = POLICY.with_changes(on_event=lambda _: has_failed.set())
            with pytest.raises(Broken) as caught:
                await AFORMS[form](policy, work)
            assert reason_of(caught.value).startswith("unsafe: POST")
            await asyncio.gather(*tasks)
        return attempts

    with Wire(OK) as wire, virtual_time():
        assert asyncio.run(main(wire.url)) == 1
        assert len(wire.seen) == 1


def test_what_a_listener_sends() -> None:
    """A listener that sends through an adapter, as to a service of metrics, does not stop the run."""
    with Wire(OK) as wire, new_client() as client, virtual_time():
        calls = list[int]()

        def work() -> None:
            calls.append(1)
            raise Broken

        policy = POLICY.with_changes(on_event=lambda _: client.post(f"{wire.url}/metrics"))
        with pytest.raises(Broken):
            POLICY.with_changes(retry_exhausted=True, attempts=2).call(policy(work))
        assert len(calls) == 6


def test_keys() -> None:
    """A key of the run, or an argument, leaves no entry; any other key does, and so does one that has expired."""
    for key_of, count in (("argument", 3), ("run_key", 3), ("new", 1), ("expired", 1)):
        with Wire(OK) as wire, virtual_time() as time:
            apis = [forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24))]
            with new_client(apis=apis) as client:

                def work(key: str | None = None, *, key_of: str = key_of, client: httpx.Client = client) -> None:
                    key = key or (forbear.run_key("charge", hours=24) if key_of == "run_key" else KEY)
                    client.post(f"{wire.url}/charges", headers={"Idempotency-Key": key})
                    if key_of == "expired":
                        time.advance(86_400)
                    raise Broken

                arguments = (KEY,) if key_of in ("argument", "expired") else ()
                with pytest.raises(Broken):
                    POLICY.call(work, *arguments)
            assert len(wire.seen) == count, key_of


def test_the_users_word() -> None:
    """`safe=` and `apis=` of adapter and policy, a scope, and `repeatable=True` count for the ledger, too."""

    def in_scope(client: httpx.Client, url: str) -> object:
        with forbear.safe_to_repeat(f"POST {url}/orders"):
            client.post(f"{url}/orders")
        raise Broken

    def vouch(request: Any) -> bool:
        return bool(request.method == "POST")

    def raise_error(request: Any) -> bool:
        raise KeyError(request)

    assert sent(in_scope)[0] == 3
    assert sent(then_fail("POST"), safe=vouch)[0] == 3
    assert sent(then_fail("POST"), safe=raise_error)[0] == 1
    assert sent(then_fail("POST"), policy=POLICY.with_repeatable(True))[0] == 3
    with Wire(OK) as wire, new_client() as client, virtual_time():
        policy = POLICY.with_changes(safe=f"POST {wire.url}/orders")
        with pytest.raises(Broken):
            policy.call(then_fail("POST"), client, wire.url)
        assert len(wire.seen) == 3


def test_warn_and_refused_values() -> None:
    """`enforce="warn"` only tells; a value that `on_result` refuses fails the attempt, too."""
    events = list[object]()
    policy = POLICY.with_changes(enforce="warn", on_event=events.append)
    assert sent(then_fail("POST"), policy=policy)[0] == 3
    told = [event for event in events if isinstance(event, WouldStop)]
    assert [event.attempt for event in told] == [1, 2, 3]
    with Wire(OK) as wire, new_client() as client, virtual_time():
        refusing = forbear.retry(on=OSError, attempts=3, on_result=lambda response: response.status_code == 200)
        assert refusing.call(client.post, f"{wire.url}/orders").status_code == 200
        assert len(wire.seen) == 1


def test_each_run_judges_with_its_own_arguments() -> None:
    """An inner run without the key as its argument succeeds; the outer one, which has it, may repeat."""
    with Wire(OK) as wire, virtual_time():
        apis = [forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24))]
        with new_client(apis=apis) as client:

            def outer(key: str) -> None:
                POLICY.call(lambda: client.post(f"{wire.url}/charges", headers={"Idempotency-Key": key}))
                raise Broken

            with pytest.raises(Broken):
                POLICY.call(outer, KEY)
            assert len(wire.seen) == 3


def test_nothing_large_is_kept() -> None:
    """E6: no body of more than 64 KiB is kept, and nothing at all of attempts that have ended, after a while."""
    with Wire(OK) as wire, new_client() as client:
        POLICY.call(int)
        ledger._of_threads.pop(threading.get_ident(), None)
        for _ in range(ledger._SWEPT + 1):
            client.post(f"{wire.url}/orders")
        entries = ledger._of_threads[threading.get_ident()]
        assert len(entries) <= 2
        request = client.build_request("POST", wire.url, content=b"x" * 100_000)
        kept = weakref.ref(request)
        client.send(request)
        del request
        gc.collect()
        assert kept() is None


def test_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that was hit counts as an entry; harmless requests are dropped before, and never hit it."""
    monkeypatch.setattr(ledger, "_MOST", 10)
    monkeypatch.setattr(ledger, "_SWEPT", 5)

    def many(method: str) -> Callable[[httpx.Client, str], object]:
        def work(client: httpx.Client, url: str) -> object:
            for number in range(25):
                client.request(method, f"{url}/{number}")
            raise Broken

        return work

    assert sent(many("PUT"))[0] == 75
    count, why = sent(many("POST"))
    assert count == 25
    assert why.startswith("unsafe")
