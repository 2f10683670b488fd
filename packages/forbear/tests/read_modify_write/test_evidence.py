"""`read` is judged by what its error shows: a lost GET is repeated, a lost POST is not."""

import pytest
import requests

import forbear
from forbear.core.decide import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.http_clients import SYNC

LOST, OK = Answer(end="close"), reply(200, b"{}")


def change(method: str, url: str) -> None:
    """Read by a method, and write nothing."""

    def read() -> int:
        SYNC["requests"](method, url)
        return 1

    policy = forbear.retry(on=OSError, attempts=3)
    forbear.update(
        read=read, modify=lambda value: value + 1, write=lambda value: None, conflict=lambda error: False, policy=policy
    )


def test_a_read_that_is_lost() -> None:
    """A GET is read again; a POST, whatever it does, is not sent twice."""
    with Wire(LOST, OK) as wire, virtual_time():
        change("GET", wire.url)
        assert len(wire.seen) == 2
    with Wire(LOST, OK) as wire, virtual_time(), pytest.raises(requests.ConnectionError) as caught:
        change("POST", wire.url)
    assert len(wire.seen) == 1
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.UNSAFE
