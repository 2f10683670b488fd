"""The generated table for HTTP: each client, method, fault and form, and how often the server executes the request."""

import contextlib
import itertools
import socket
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import httpx2
import pytest
import requests

import forbear
from forbear.events import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import FORMS, WRAPS, run_async
from forbear_testkit.evidence.http_clients import ASYNC, NAMES, SYNC

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
METHODS = ("GET", "PUT", "DELETE", "POST", "PATCH")
REPEATED = ("GET", "PUT", "DELETE")
LOST = Answer(end="close")
OK = reply(200, b"{}")
FAULTS = {
    "lost": (LOST, OK),
    "half": (reply(200, b"half", length=100, end="close"), OK),
    "reset": (Answer(end="reset"), OK),
    "503": (reply(503), OK),
    "redirect": (reply(303, b"", "Location: /done"), LOST, reply(303, b"", "Location: /done"), OK),
}
_OLD_URLLIB3 = int(version("urllib3").partition(".")[0]) < 2
SILENT = {
    ("http.client", "503"),
    ("urllib3", "503"),
    ("http.client", "redirect"),
    *((("requests", "half"), ("urllib3", "half")) if _OLD_URLLIB3 else ()),
}
"""Clients that raise nothing for a fault; old versions of urllib3 take a body that was cut off for a whole one."""


class Case(NamedTuple):
    """One case of the table."""

    client: str
    method: str
    fault: str
    form: str
    wrap: str


def _cases() -> list[Case]:
    product = itertools.product(NAMES, METHODS, FAULTS, FORMS, WRAPS)
    return [case for case in itertools.starmap(Case, product) if not _is_silent(case)]


def _is_silent(case: Case) -> bool:
    if case.client == "urllib" and case.fault == "redirect" and case.method not in ("GET", "POST"):
        return True  # it follows no such redirect, and raises that response
    if case.client == "aiohttp" and case.fault == "redirect" and case.method in REPEATED:
        return True  # it sends the request after the redirect again by itself
    return (case.client, case.fault) in SILENT


ALL = _cases()
SAMPLE = {(case.client, case.method, case.fault): case for case in ALL[:: len(FORMS) * len(WRAPS) - 1]}.values()
"""One case for each client, method and fault, with the forms and wraps in turn."""


def name_of(case: Case) -> str:
    """Return the name of a case."""
    return "-".join(case)


def run(case: Case, url: str) -> tuple[int, Exception | None]:
    """Run a case, and return how often the function was called, and its error."""
    calls = list[int]()
    wrap = WRAPS[case.wrap]

    def work() -> object:
        calls.append(1)
        try:
            return SYNC[case.client](case.method, url)
        except Exception as error:
            raised = error
        return wrap(raised)

    async def awork() -> object:
        calls.append(1)
        try:
            return await ASYNC[case.client](case.method, url)
        except Exception as error:
            raised = error
        return wrap(raised)

    with virtual_time():
        try:
            if case.client in SYNC:
                FORMS[case.form](POLICY, work)
            else:
                run_async(case.form, POLICY, awork)
        except Exception as error:
            return len(calls), error
    return len(calls), None


def check(case: Case) -> None:
    """A safe request is repeated until it works; any other one is executed once, and the note says why."""
    with Wire(*FAULTS[case.fault]) as wire:
        calls, error = run(case, f"{wire.url}/orders")
        executed = [seen.method for seen in wire.seen if seen.target == "/orders"]
    if case.method in REPEATED:  # aiohttp itself tries such a request again if its connection breaks
        assert (executed, error) == ([case.method] * 2, None)
        return
    assert (calls, executed) == (1, [case.method])
    assert error is not None
    report = forbear.report(error)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert case.method in report.text
    assert case.client == "http.client" or f"{wire.url}/orders" in report.text


@pytest.mark.parametrize("case", SAMPLE, ids=name_of)
def test_how_often_the_server_executes(case: Case) -> None:
    """A sample: every client with every method and every fault."""
    check(case)


@pytest.mark.soak
@pytest.mark.parametrize("case", ALL, ids=name_of)
def test_how_often_the_server_executes_in_every_form(case: Case) -> None:
    """The whole table."""
    check(case)


@pytest.mark.parametrize("client", NAMES)
def test_a_refused_connection_is_repeated(client: str) -> None:
    """Nothing was sent, so even a POST is tried again."""
    with Wire(OK) as wire:
        pass
    for method in ("POST", "PATCH"):
        calls, error = run(Case(client, method, "refused", "called", "bare"), f"{wire.url}/orders")
        report = forbear.report(error)
        assert report is not None
        assert (calls, report.reason) == (3, Reason.ATTEMPTS)


def executed(function: Callable[[str], object], *answers: Answer, policy: forbear.Policy = POLICY) -> int:
    """Run a function of the server's URL under a policy; return how many writes the server executed."""
    with Wire(*answers) as wire, virtual_time():
        with contextlib.suppress(Exception):
            policy.call(function, wire.url)
        return sum(seen.method != "GET" for seen in wire.seen)


def post(url: str) -> object:
    """Send a POST by requests."""
    return SYNC["requests"]("POST", f"{url}/search")


def test_the_users_word_counts() -> None:
    """`repeatable=True`, a pattern in `safe=` and an open scope let a POST be repeated; another pattern does not."""
    with Wire(LOST, OK) as wire:
        url = wire.url
        with virtual_time():
            POLICY.with_changes(safe=f"POST {url}/search").call(post, url)
    assert len(wire.seen) == 2
    assert executed(post, LOST, OK, policy=POLICY.with_repeatable(True)) == 2
    assert executed(post, LOST, OK, policy=POLICY.with_changes(safe="POST http://other.example/search")) == 1
    with Wire(LOST, OK) as wire, virtual_time(), forbear.safe_to_repeat(f"POST {wire.url}/search"):
        POLICY.call(post, wire.url)
    assert len(wire.seen) == 2


def test_a_scope_within_the_function() -> None:
    """The scope was open when the request was sent, although it is closed when the error is judged."""

    def vouched(url: str) -> object:
        with forbear.safe_to_repeat(f"POST {url}/search"):
            return post(url)

    def elsewhere(url: str) -> object:
        with forbear.safe_to_repeat(f"POST {url}/other"):
            return post(url)

    assert executed(vouched, LOST, OK) == 2
    assert executed(elsewhere, LOST, OK) == 1


def test_e1_a_redirect_of_a_get_is_repeated() -> None:
    """E1: hops that are reads stop nothing."""
    with Wire(reply(302, b"", "Location: /a"), LOST, reply(302, b"", "Location: /a"), OK) as wire, virtual_time():
        POLICY.call(SYNC["requests"], "GET", wire.url)
    assert len(wire.seen) == 4


def test_l5_a_fallback_within_except() -> None:
    """L5: the run is made while another call's failure is handled; that POST is not one of the run."""
    with Wire(LOST, LOST, OK) as wire, virtual_time():
        try:
            SYNC["httpx"]("POST", wire.url)
        except Exception:
            POLICY.call(SYNC["httpx"], "GET", wire.url)
    assert [seen.method for seen in wire.seen] == ["POST", "GET", "GET"]


def test_l6_the_least_safe_of_the_chain_decides() -> None:
    """L6: the second server refuses the connection, but the first one may have executed the POST."""
    with Wire(OK) as nobody:
        pass

    def work(url: str) -> object:
        try:
            return post(url)
        except Exception:
            return post(nobody.url)

    assert executed(work, LOST, OK) == 1


@pytest.mark.unmutated
def test_e5_an_attempt_that_is_cut_off() -> None:
    """E5: the attempt timeout ends a POST that the server has; it is not sent again."""
    from forbear.run.runtime import AttemptTimeout

    with Wire(Answer(end="stall")) as wire:
        policy = forbear.retry(on=Exception, attempts=3, backoff=forbear.Constant(0), attempt_timeout=0.2)

        async def work() -> object:
            return await ASYNC["httpx async"]("POST", wire.url)

        with pytest.raises(AttemptTimeout) as caught:
            run_async("decorated", policy, work)
        assert len(wire.seen) == 1
    assert forbear.report(caught.value).reason is Reason.UNSAFE  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_version_that_the_next_attempt_would_read_anew(method: str) -> None:
    """A write that is safe in itself may depend on a version; a newer one would make it undo a change, or add twice."""
    versions = itertools.count(1)

    def write(url: str, etag: str) -> object:
        return requests.request(method, url, headers={"If-Match": etag}, timeout=5)

    assert executed(lambda url: write(url, f'"version-{next(versions)}"'), LOST, OK) == 1
    assert executed(lambda url: POLICY.call(write, url, '"version-1"'), LOST, OK) == 2
    assert executed(lambda url: POLICY.call(write, url, "*"), LOST, OK) == (1 if method == "PATCH" else 2)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_k9_a_write_that_must_be_the_first_under_a_name_that_was_drawn(method: str) -> None:
    """K9: `If-None-Match: *` under a name that is new in each attempt would create two; a fixed name is repeated."""

    def create(url: str) -> object:
        return requests.request(method, url, headers={"If-None-Match": "*"}, timeout=5)

    assert executed(lambda url: create(f"{url}/{uuid4()}"), LOST, OK) == 1
    assert executed(lambda url: create(f"{url}/settings"), LOST, OK) == 2


def fetch_with_hook(library: Any, method: str, url: str, hook: Callable[[], object]) -> None:
    """Send a request whose response is handed to a hook."""

    def called(response: Any, **_: object) -> None:
        response.close()
        hook()

    if library is requests:
        requests.request(method, url, hooks={"response": called}, timeout=5)
    else:
        with library.Client(event_hooks={"response": [called]}) as client:
            client.request(method, url)


async def afetch_with_hook(library: Any, method: str, url: str, hook: Callable[[], object]) -> None:
    """Send a request whose response is handed to an async hook."""

    async def called(response: Any) -> None:
        await response.aclose()
        hook()

    async with library.AsyncClient(event_hooks={"response": [called]}) as client:
        await client.request(method, url)


def refuse() -> None:
    """Raise an error that knows no request."""
    raise LookupError("this response is refused")


WITH_HOOKS = pytest.mark.parametrize("library", [requests, httpx, httpx2], ids=lambda library: library.__name__)


@WITH_HOOKS
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("form", FORMS)
def test_a_response_that_a_hook_refuses(library: Any, method: str, form: str) -> None:
    """The request was executed, although the error of the hook knows none."""
    executed = 3 if method in REPEATED else 1
    with Wire(*[OK] * 6) as wire, virtual_time():
        with contextlib.suppress(LookupError):
            FORMS[form](POLICY, lambda: fetch_with_hook(library, method, wire.url, refuse))
        assert len(wire.seen) == executed
        wire.seen.clear()
        if library is not requests:
            with contextlib.suppress(LookupError):
                run_async(form, POLICY, lambda: afetch_with_hook(library, method, wire.url, refuse))
            assert len(wire.seen) == executed


@WITH_HOOKS
@pytest.mark.parametrize("inner", SYNC)
def test_a_hook_that_connects_to_nobody(library: Any, inner: str) -> None:
    """That nothing of its request was sent says nothing of the request around it."""
    with socket.socket() as reserved, Wire(OK, OK) as wire, virtual_time():
        reserved.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{reserved.getsockname()[1]}/"
        with contextlib.suppress(Exception):
            POLICY.call(fetch_with_hook, library, "POST", wire.url, partial(SYNC[inner], "GET", nobody))
        assert len(wire.seen) == 1


@WITH_HOOKS
@pytest.mark.parametrize("fault", ["lost", "half"])
@pytest.mark.parametrize("inner", SYNC)
def test_a_hook_that_sends_a_message(library: Any, inner: str, fault: str) -> None:
    """The request around it, a read, does not hide it."""
    with Wire(OK, FAULTS[fault][0], OK, OK) as wire, virtual_time():
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each client has its own
            POLICY.call(fetch_with_hook, library, "GET", wire.url, partial(SYNC[inner], "POST", f"{wire.url}/orders"))
        report = forbear.report(caught.value)
        assert report is not None
        assert report.reason is Reason.UNSAFE
        assert [seen.method for seen in wire.seen] == ["GET", "POST"]
