"""Reports of every HTTP client have the facts for a support case: the request, the status, the ids and the times."""

from itertools import pairwise
from pathlib import Path

import pytest

import forbear
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.secure import self_signed
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.through_everything.adapters import ADAPTERS, Adapter, Call
from forbear_testkit.through_everything.rules import Column, Operation

READ = Operation("read", Column.ALWAYS, cloud_storage.policy, "GET", "/storage/v1/b/bkt/o/a?fields=secret")
SENT = {
    "X-GUploader-UploadID": "ABPtcPq-1",
    "X-Goog-Request-Id": "req-2",
    "X-Cloud-Trace-Context": "105445aa7843bc8bf206b120001000/1;o=1",
    "x-request-id": "req-3",
    "Set-Cookie": "sid=secret",
}
IDS = {
    "x-guploader-uploadid": "ABPtcPq-1",
    "x-goog-request-id": "req-2",
    "x-cloud-trace-context": "105445aa7843bc8bf206b120001000/1",
    "x-request-id": "req-3",
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate, which the clients of the table load; the cloud has none."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    self_signed(path)
    return path


def ids_of(report: forbear.events.Report) -> list[dict[str, str]]:
    """The ids of each attempt."""
    return [dict(attempt.request_ids) for attempt in report.attempts]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_every_adapter(cloud: Cloud, certificate: Path, adapter: Adapter) -> None:
    """Each attempt that the server answered has its status and ids, and no secret is in the text."""
    cloud.fault(Fault.status(503, times=2, headers=SENT), Fault.reset(times=1))
    outcome = adapter.talk(Call(READ, cloud.url, None, certificate, http2=False, timeout=10, reused=False))
    report = outcome.report
    assert report is not None
    assert (report.method, report.resource) == ("GET", f"{cloud.url}/storage/v1/b/bkt/o/a")
    assert [attempt.status for attempt in report.attempts] == [503, 503, None]
    assert ids_of(report) == [IDS, IDS, {}]
    times = [attempt.time or 0.0 for attempt in report.attempts]
    waits = [after - before for before, after in pairwise(times)]
    assert waits == pytest.approx(outcome.slept, abs=0.001)
    text = report.as_text()
    assert "secret" not in text
    for value in IDS.values():
        assert text.count(value) == 2
    for attempt in report.as_dict()["attempts"]:
        assert f"failed at {attempt['time']}, after " in text


def test_times_are_of_the_runtime(cloud: Cloud, flavour: Flavour) -> None:
    """Virtual time moves the wall clock, too, with and without a listener."""
    policy = cloud_storage.policy.with_attempts(2).with_timeout(9999).with_backoff(forbear.Constant(3600))
    heard: list[forbear.events.Event] = []
    for listener in (None, heard.append):
        cloud.fault(Fault.status(503, times=2))
        clocks: list[VirtualTime] = []
        transport = flavour.transport(policy.with_on_event(listener))
        result = flavour.call(transport, "GET", cloud.url + READ.target, clock=clocks.append)
        began = clocks[0].now - clocks[0].elapsed
        assert [attempt.time for attempt in result.report.attempts] == [began, began + 3600]


def test_a_response_that_breaks(flavour: Flavour) -> None:
    """Its status and its ids are known: those of a write whose response is read at once, and of a download."""
    broken = reply(200, b"one", "X-Request-Id: req-1", 'ETag: "e"', end="close", length=9)
    with Wire(broken) as wire:
        posted = flavour.call(flavour.transport(), "POST", wire.url, content=b"x")
        fetched = flavour.call(flavour.transport(rfc9110.policy.with_attempts(2)), "GET", wire.url)
    for result, count in (posted, 1), (fetched, 2):
        attempts = result.report.attempts
        assert [(each.status, each.request_ids) for each in attempts] == [(200, (("x-request-id", "req-1"),))] * count


def test_a_download_that_nobody_continues(flavour: Flavour) -> None:
    """The attempt that was refused has the status and the ids of its own response, one without a response has none."""
    broken = reply(200, b"one", "X-Request-Id: req-1", 'ETag: "e"', "Accept-Ranges: bytes", end="close", length=9)
    refused = reply(503, b"", "X-Request-Id: req-2")
    with Wire(broken, refused, Answer(end="reset")) as wire:
        result = flavour.call(flavour.transport(rfc9110.policy.with_attempts(3)), "GET", wire.url)
    attempts = [(each.status, dict(each.request_ids).get("x-request-id")) for each in result.report.attempts]
    assert attempts == [(200, "req-1"), (503, "req-2"), (None, None)]
    assert result.report.method == "GET"


def test_the_key_of_an_upload_session_is_hidden(cloud: Cloud, flavour: Flavour) -> None:
    """For the request that starts a session and for its chunks, while a simple upload shows the id."""
    headers = {"X-GUploader-UploadID": "the-key"}
    policy = cloud_storage.policy.with_attempts(1)
    for kind, shown in ("resumable", "[redacted]"), ("media", "the-key"):
        cloud.fault(Fault.status(503, headers=headers))
        url = f"{cloud.url}/upload/storage/v1/b/bkt/o?uploadType={kind}&name=new&ifGenerationMatch=0"
        result = flavour.call(flavour.transport(policy), "POST", url, content=b"")
        assert ids_of(result.report) == [{"x-guploader-uploadid": shown}]


def test_a_function_has_times() -> None:
    """A plain function has no request, but its attempts have times, which follow from one look at the wall clock."""
    policy = forbear.retry(on=OSError, attempts=3, backoff=forbear.Constant(10))
    with virtual_time() as time, pytest.raises(FileNotFoundError) as caught:
        policy.call(open, "/nowhere")
    began = time.now - time.elapsed
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.method, report.resource) == (None, None)
    assert [each.time for each in report.attempts] == pytest.approx([began, began + 10, began + 20])
