"""Requests of google-api-python-client in errors: of one, and of a batch."""

from typing import Any

import httplib2  # type: ignore[import-untyped]
import pytest
from googleapiclient.http import BatchHttpRequest, HttpRequest

import forbear
from forbear.evidence import read
from forbear.http.request import Request
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

LOST = Answer(end="reset")
FAILURES = pytest.mark.parametrize(("answer", "status"), [(reply(503), 503), (LOST, None)], ids=["503", "lost"])


def _status(response: Any, _: bytes) -> Any:
    return response.status


def _request(wire: Wire, method: str) -> Any:
    return HttpRequest(httplib2.Http(timeout=5), _status, f"{wire.url}/things/7", method)


@FAILURES
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_request(method: str, answer: Answer, status: int | None) -> None:
    """Its error shows method, URL and status, and that it may have been executed."""
    with Wire(answer) as wire:
        request = _request(wire, method)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - of googleapiclient or of the system
            request.execute()
        request.http.close()
    evidence = read(caught.value)
    assert evidence is not None
    (sent,) = evidence.requests
    assert isinstance(sent.subject, Request)
    assert (sent.method, sent.resource, sent.status, sent.unsent) == (method, f"{wire.url}/things/7", status, False)


@FAILURES
def test_a_batch(answer: Answer, status: int | None) -> None:
    """A batch is one POST, whatever is in it."""
    with Wire(answer) as wire:
        request, batch = _request(wire, "GET"), BatchHttpRequest(batch_uri=f"{wire.url}/batch")
        batch.add(request)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - of googleapiclient or of the system
            batch.execute(http=request.http)
        request.http.close()
    evidence = read(caught.value)
    assert evidence is not None
    assert [(sent.method, sent.resource) for sent in evidence.requests] == [("POST", f"{wire.url}/batch")]


@pytest.mark.parametrize(("method", "sent"), [("GET", 2), ("PATCH", 1)])
def test_a_policy_around_execute(method: str, sent: int) -> None:
    """A read is executed again after 503, a write without a condition is not."""
    with Wire(reply(503), reply(200)) as wire, virtual_time():
        request = _request(wire, method)
        if sent == 1:
            with pytest.raises(Exception, match="503") as caught:
                forbear.retry(forbear.transient).call(request.execute)
            assert "may have been executed" in caught.value.__notes__[0]
        else:
            assert forbear.retry(forbear.transient).call(request.execute) == 200
        request.http.close()
    assert len(wire.seen) == sent
