"""Tests of urllib3 alone: facts that its Retry object does not see count as unsafe, and it redirects by itself."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

import forbear
from forbear import Limits
from forbear.budgets import Budget, TokenBucket
from forbear.clients._urllib3 import verdict_of
from forbear.clients.urllib3 import Retry
from forbear.events import Event, Reason, Recovered
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime
from forbear.verdicts import PERMANENT, TRANSIENT
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.secure import untrusted
from forbear_testkit.clients.wire import Answer, Wire, reply

THERE = "/storage/v1/b/bkt/o/there"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=new"


@pytest.fixture
def time() -> Iterator[VirtualTime]:
    """Virtual time."""
    with virtual_time(seed=7) as time:
        yield time


def pool(policy: Any = None, **options: Any) -> urllib3.PoolManager:
    """A pool that retries."""
    return urllib3.PoolManager(retries=Retry(policy, **options), timeout=10)


@pytest.mark.parametrize(
    ("body", "promised"),
    [(b"whole", False), (b"whole", True), (iter([b"wh", b"ole"]), False)],
    ids=["bytes", "promised", "stream"],
)
def test_a_body_nobody_has_seen_is_sent_once(time: VirtualTime, body: Any, promised: bool) -> None:
    """urllib3 would send what is left of a stream as if it were all, so only a promise makes a PUT repeatable."""
    with Wire(reply(503), reply(200)) as wire, pool(bodies_are_reusable=promised) as client:
        response = client.request("PUT", wire.url, body=body)
        assert [seen.body for seen in wire.seen] == [b"whole"] * (2 if promised else 1)
    told = forbear.report(response)
    assert (told is None) == promised
    if told is not None:
        assert told.reason is Reason.BODY
        assert "bodies_are_reusable=True" in told.text


def test_what_was_not_sent_is_always_repeated(time: VirtualTime) -> None:
    """Nothing was taken from a body before there was a connection; the error is what urllib3 makes of it."""
    with pool() as client, pytest.raises(urllib3.exceptions.MaxRetryError) as caught:
        client.request("POST", "http://127.0.0.1:9/", body=iter([b"x"]))
    told = forbear.report(caught.value)
    assert told is not None
    assert len(told.attempts) == len(time.slept) + 1 > 1
    assert caught.value.__notes__ == [told.note]


def test_an_error_of_the_callers_own_stream_proves_nothing(time: VirtualTime) -> None:
    """A body that is read from elsewhere may fail to connect there; what is left of it is not sent as if all."""

    def elsewhere() -> Iterator[bytes]:
        yield b"half"
        urllib3.PoolManager().request("GET", "http://127.0.0.1:9/", retries=False)

    with Wire(reply(200)) as wire, pool() as client, pytest.raises(urllib3.exceptions.MaxRetryError) as caught:
        client.request("POST", wire.url, body=elsewhere())
    assert isinstance(caught.value.reason, urllib3.exceptions.NewConnectionError)
    assert time.slept == []


def test_a_fingerprint_that_does_not_match_is_final(time: VirtualTime, tmp_path: Path) -> None:
    """No other attempt gives the server another certificate."""
    with untrusted(tmp_path / "pem") as (url, handshakes):
        client = urllib3.PoolManager(retries=Retry(), cert_reqs="CERT_NONE", assert_fingerprint="00" * 32)
        with client, pytest.raises(urllib3.exceptions.MaxRetryError) as caught:
            client.request("GET", url)
        assert len(handshakes) == 1
    assert isinstance(caught.value.reason, urllib3.exceptions.SSLError)


def test_a_traceback_that_is_gone_proves_nothing() -> None:
    """The place where an error was raised proves what was sent; its name does not."""
    refused = urllib3.exceptions.NewConnectionError(Any, "refused")  # type: ignore[arg-type]
    assert verdict_of(refused) is TRANSIENT
    assert verdict_of(urllib3.exceptions.ProxyError("Unable to connect to proxy", refused)) is TRANSIENT
    assert verdict_of(urllib3.exceptions.ProxyError("no", OSError("Tunnel connection failed: 503 Sorry"))) is TRANSIENT
    assert verdict_of(urllib3.exceptions.MaxRetryError(Any, "/", None)) is PERMANENT  # type: ignore[arg-type]


def test_a_condition_in_a_header_is_not_seen(time: VirtualTime, cloud: Cloud) -> None:
    """The same upload is repeated with its condition in the query, and not with one in a header."""
    for query, headers, requests_ in (("&ifGenerationMatch=0", {}, 2), ("", {"x-goog-if-generation-match": "0"}, 1)):
        seen = len(cloud.requests)
        cloud.fault(Fault.status(503))
        with pool(cloud_storage.policy, bodies_are_reusable=True) as client:
            client.request("POST", cloud.url + UPLOAD + query, body=b"x", headers=headers)
        assert len(cloud.requests) - seen == requests_


def test_a_chunk_of_an_upload_is_never_sent_again(time: VirtualTime, cloud: Cloud) -> None:
    """Nobody can ask the session what it has, so the caller must."""
    with pool(cloud_storage.policy, bodies_are_reusable=True) as client:
        start = cloud.url + UPLOAD.replace("media", "resumable")
        session = client.request("POST", start).headers["location"]
        cloud.fault(Fault.status(503))
        seen = len(cloud.requests)
        assert client.request("PUT", session, body=b"x", headers={"Content-Range": "bytes 0-0/1"}).status == 503
        assert len(cloud.requests) - seen == 1


def test_the_server_is_obeyed(time: VirtualTime) -> None:
    """Retry-After is waited for in the time of the run, not in urllib3's own sleep."""
    with Wire(reply(503, b"", "Retry-After: 17"), reply(200)) as wire, pool() as client:
        assert client.request("GET", wire.url).status == 200
    assert [delay >= 17 for delay in time.slept] == [True]


def test_a_body_that_breaks_is_asked_for_again(time: VirtualTime) -> None:
    """A body that urllib3 reads at once is requested anew from the start; one that it returns piece by piece is not."""
    with Wire(reply(200, b"ha", length=5, end="close"), reply(200, b"whole")) as wire, pool() as client:
        assert client.request("GET", wire.url).data == b"whole"
    with Wire(reply(200, b"ha", length=5, end="close")) as wire, pool() as client:
        response = client.request("GET", wire.url, preload_content=False)
        with pytest.raises(urllib3.exceptions.ProtocolError):
            response.read()
        assert len(wire.seen) == 1


def test_the_last_error_comes_out_as_urllib3_raises_it(time: VirtualTime) -> None:
    """A connection that broke is a ProtocolError with one note."""
    with Wire(Answer(end="reset")) as wire, pool(rfc9110.policy.with_attempts(3)) as client:
        with pytest.raises(urllib3.exceptions.ProtocolError) as caught:
            client.request("GET", wire.url)
        assert len(wire.seen) == 3
    (note,) = caught.value.__notes__
    assert note.startswith("forbear: gave up after 3 attempts in ")


def test_redirects_are_followed_as_often_as_allowed(time: VirtualTime) -> None:
    """Each hop is a request of its own; too many of them raise, as in urllib3."""
    hop = reply(302, b"", "Location: /on")
    with Wire(hop, reply(503), hop, reply(200)) as wire, pool(redirect=2) as client:
        assert client.request("GET", wire.url).status == 200
        assert [seen.target for seen in wire.seen] == ["/", "/on", "/on", "/on"]
    with Wire(hop) as wire, pool(redirect=2) as client, pytest.raises(urllib3.exceptions.MaxRetryError):
        client.request("GET", wire.url)


def test_it_is_what_requests_takes_for_max_retries(time: VirtualTime) -> None:
    """Through a plain HTTPAdapter: errors are those of requests, and the report is found through them."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=Retry(rfc9110.policy.with_attempts(2))))
        with Wire(reply(503)) as wire:
            response = session.get(wire.url)
            assert len(wire.seen) == 2
        assert forbear.report(response) is not None
        with pytest.raises(requests.HTTPError) as failed:
            response.raise_for_status()
        assert forbear.report(failed.value) is not None
        with Wire(Answer(end="close")) as wire, pytest.raises(requests.ConnectionError) as lost:
            forbear.retry(on=OSError).call(session.post, wire.url, data=b"x")
        assert len(wire.seen) == 1
        assert forbear.report(lost.value) is not None
        again: requests.Session = pickle.loads(pickle.dumps(session))
        with Wire(reply(503)) as wire:
            again.get(wire.url)
            assert len(wire.seen) == 2


def test_one_object_serves_many_requests(time: VirtualTime) -> None:
    """State lives in the copies that urllib3 makes, so each request has all of its attempts."""
    with pool(rfc9110.policy.with_limits(Limits(attempts=2))) as client, Wire(reply(503)) as wire:
        for _ in range(3):
            client.request("GET", wire.url)
        assert len(wire.seen) == 6


def test_budgets_and_listeners_learn_of_successes(time: VirtualTime) -> None:
    """A success pays in, and one after a failure is a recovery."""
    events: list[Event] = []
    budget = Budget(TokenBucket(capacity=1, deposit=0.5))
    policy = rfc9110.policy.with_budget(budget).with_on_event(events.append)
    with Wire(reply(503), reply(200)) as wire, pool(policy) as client:
        for _ in range(3):
            assert client.request("GET", wire.url).status == 200
    assert isinstance(events[-1], Recovered)


def test_retries_are_off_where_they_are_turned_off(time: VirtualTime) -> None:
    """One attempt, its outcome untouched."""
    with forbear.disabled(), pool() as client:
        with Wire(reply(503)) as wire:
            assert client.request("GET", wire.url).status == 503
        with Wire(Answer(end="close")) as wire, pytest.raises(urllib3.exceptions.ProtocolError):
            client.request("GET", wire.url)
    assert time.slept == []


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (3, "`policy` must be a forbear.Policy or None (each service's own), got 3"),
        (
            rfc9110.policy.with_attempt_timeout(1),
            "`policy` must do without attempt_timeout, which urllib3",
        ),
        (
            forbear.retry(on=Exception, on_result=bool),
            "`policy` must do without on_result, which urllib3",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_a_cure(policy: Any, text: str) -> None:
    """Each error names the parameter and what to do."""
    with pytest.raises(TypeError) as caught:
        Retry(policy)
    assert str(caught.value).startswith(text)


def test_a_missing_library_is_said_with_its_cure() -> None:
    """Importing the adapter without urllib3 names the extra to install; forbear itself does without."""
    script = "import sys; sys.modules['urllib3'] = None; import forbear; import forbear.clients.urllib3"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith(
        'ImportError: forbear.clients.urllib3 needs urllib3; install it with: pip install "forbear[urllib3]"'
    )


def test_the_repr_is_the_call_that_makes_it() -> None:
    """It shows only what differs from the defaults."""
    assert [repr(Retry()), repr(Retry(attempts=3))] == ["Retry()", "Retry(attempts=3)"]
