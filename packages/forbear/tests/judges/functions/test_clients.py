"""The generated table for SDKs: each operation, fault and form, and how often the server executes the request."""

import contextlib
import itertools
from collections.abc import Generator
from importlib.metadata import version
from typing import NamedTuple

import pytest

import forbear
from forbear.events import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import FORMS, WRAPS
from forbear_testkit.evidence.sdk_clients import BULKS, OPERATIONS, SLACK_PAGES, SLACK_WEBHOOK

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
FAULTS = ("lost", "half", "reset", "503", "refused", "garbled")
HEADERS = ("X-Elastic-Product: Elasticsearch",)
_OLD_URLLIB3 = int(version("urllib3").partition(".")[0]) < 2
_AWS = {f"{client} {name}" for client in ("boto3", "aiobotocore") for name in ("get", "add")}
_STREAM = {"anthropic stream"}
_CUT_OFF = {"twilio send", "secret add", "storage delete"} if _OLD_URLLIB3 else set[str]()
SILENT = {
    "half": {"boto3 get", "boto3 add", *_STREAM, *_CUT_OFF},
    "garbled": {*_AWS, *_STREAM, *(("kubernetes read", "kubernetes create") if _OLD_URLLIB3 else ())},
}
"""Operations that take a body that was cut off, or is no JSON, for a good one: of botocore, of old clients of
Kubernetes, and over requests with an old urllib3. A stream may have begun, and passes over what is no event."""


class Case(NamedTuple):
    """One case of the table."""

    operation: str
    fault: str
    form: str
    wrap: str


PRODUCT = zip(itertools.product(OPERATIONS, FAULTS, FORMS), itertools.cycle(WRAPS))
ALL = [Case(*names, wrap) for names, wrap in PRODUCT if names[0] not in SILENT.get(names[1], ())]
"""One case for each operation, fault and form, with the wraps in turn."""
SAMPLE = [case for case in ALL[:: len(FORMS) - 1] if case.operation.startswith("stripe")]
"""Cases of one SDK with every fault, with the forms in turn."""


def name_of(case: Case) -> str:
    """Return the name of a case."""
    return "-".join(case)


def answers_to(case: Case) -> tuple[Answer, ...]:
    """Return what the server does: the fault, then a response that the client accepts."""
    body = OPERATIONS[case.operation].answer
    headers = (*HEADERS, f"Content-Type: application/{'xml' if body.startswith(b'<') else 'json'}")
    good = reply(200, body, *headers)
    faults = {
        "lost": Answer(end="close"),
        "half": reply(200, body[:1], *headers, length=100, end="close"),
        "reset": Answer(end="reset"),
        "503": reply(503, b"{}", *headers),
        "garbled": reply(200, b"{<", *headers),
    }
    return (faults[case.fault], good) if case.fault in faults else (good,)


def run(case: Case, url: str) -> tuple[int, Exception | None]:
    """Run a case, and return how often the function was called, and its error."""
    calls, wrap = list[int](), WRAPS[case.wrap]

    def work() -> object:
        calls.append(1)
        try:
            return OPERATIONS[case.operation].call(url)
        except Exception as error:
            raised = error
        return wrap(raised)

    with virtual_time():
        try:
            FORMS[case.form](POLICY, work)
        except Exception as error:
            return len(calls), error
    return len(calls), None


def check(case: Case) -> None:
    """A read is sent again; a write is executed once, unless the server was never reached."""
    operation = OPERATIONS[case.operation]
    wire = Wire(*answers_to(case))
    with wire if case.fault != "refused" else closed(wire):
        calls, error = run(case, wire.url)
    report = forbear.report(error)
    reason = None if report is None else report.reason
    if case.fault == "refused":
        assert (calls, reason) == (3, Reason.ATTEMPTS)
        return
    expected = 2 if operation.repeated else 1
    seen = [(each.method, each.target.partition("?")[0]) for each in wire.seen]
    assert (calls, seen) == (expected, [(operation.method, operation.path)] * expected)
    assert reason is (None if operation.repeated else Reason.UNSAFE)


@contextlib.contextmanager
def closed(wire: Wire) -> Generator[None]:
    """Let a server listen, and close it before the block: nobody else has its port."""
    with wire:
        pass
    yield


@pytest.mark.parametrize("case", SAMPLE, ids=name_of)
def test_how_often_the_server_executes(case: Case) -> None:
    """A sample: one SDK with every fault."""
    check(case)


@pytest.mark.soak
@pytest.mark.parametrize("case", ALL, ids=name_of)
def test_how_often_the_server_executes_in_every_form(case: Case) -> None:
    """The whole table, of all SDKs that are installed; `make clients` installs each at two versions."""
    check(case)


_JSON = (*HEADERS, "Content-Type: application/json")
_FAILED = (
    b'{"errors": true, "items": [{"index": {"status": 201}}, {"index": {"status": 429, "error": {"type": "busy"}}}]}'
)
_FIRST_PAGE = b'{"ok": true, "response_metadata": {"next_cursor": "x"}}'


@pytest.mark.soak
@pytest.mark.parametrize("name", BULKS)
def test_a_bulk_of_which_an_item_failed(name: str) -> None:
    """The helper's own error shows no request, but the other items are stored."""
    pytest.importorskip(name)
    with Wire(*[reply(200, _FAILED, *_JSON)] * 2) as wire, virtual_time():
        with pytest.raises(Exception, match="failed to index"):
            POLICY.call(BULKS[name], wire.url)
        assert len(wire.seen) == 1


@pytest.mark.soak
def test_slack() -> None:
    """The second page of a listing is read like the first; a message that a webhook may have sent is not sent again."""
    pytest.importorskip("slack_sdk")
    with Wire(reply(200, _FIRST_PAGE, *_JSON), Answer(end="close"), reply(200, b'{"ok": true}', *_JSON)) as wire:
        with virtual_time():
            POLICY.call(SLACK_PAGES, wire.url)
        assert len(wire.seen) == 3
    with Wire(reply(500), reply(200)) as wire, virtual_time():
        with pytest.raises(RuntimeError):
            POLICY.call(SLACK_WEBHOOK, wire.url)
        assert len(wire.seen) == 1
