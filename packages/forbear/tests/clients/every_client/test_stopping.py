"""`stop_on` and `stop=` in clients: the last response is returned, or the last error raised, with a report."""

import threading
from typing import Any

import grpc
import pytest
import redis

import forbear
from forbear.clients.grpc import RetryInterceptor
from forbear.clients.redis import Redis
from forbear.core.decide import Reason
from forbear.services import redis as redis_service
from forbear.services import rfc9110
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.others import BLIND_TOO
from forbear_testkit.clients.wire import Wire, reply

MINUTES = forbear.Constant(600)


class Flag:
    """An event that is set during the wait: it is looked at after the failure, as the wait begins, and then again."""

    def __init__(self) -> None:
        self.looks = 0

    def is_set(self) -> bool:
        """Return whether a wait has begun."""
        self.looks += 1
        return self.looks > 2

    def wait(self, timeout: float, /) -> None:
        """The main thread must not wait for an event."""
        raise AssertionError(timeout)


@BLIND_TOO
def test_a_response_is_returned_as_it_is(flavour: Flavour) -> None:
    """Its body can be read: a sync client keeps it open while it waits."""
    event = threading.Event()
    event.set()
    policy = rfc9110.policy.with_backoff(forbear.Constant(1))
    with Wire(reply(503, body=b"busy")) as wire, forbear.stop_on(event):
        result = flavour.call(flavour.transport(policy), "GET", wire.url)
        assert (result.status, result.content, len(wire.seen)) == (503, b"busy", 1)
    assert (result.report.reason, result.slept) == (Reason.STOPPED, [])


@BLIND_TOO
def test_a_policy_may_stop(flavour: Flavour, closed_port: int) -> None:
    """By what it sees of the failure: a response has a name, an error is at hand."""
    seen: list[tuple[str, int]] = []

    def stop(failed: forbear.events.Failed) -> bool:
        seen.append((failed.name, failed.attempt))
        return failed.attempt == 2

    policy = rfc9110.policy.replace(stop=stop)
    with Wire(reply(503), reply(503), reply(200)) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url)
        assert (result.status, len(wire.seen)) == (503, 2)
    assert seen == [("HTTP 503", 1), ("HTTP 503", 2)]
    refused = flavour.call(flavour.transport(policy), "GET", f"http://127.0.0.1:{closed_port}/")
    assert (refused.report.reason, refused.report.count) == (Reason.STOPPED, 2)


def test_waits_of_sync_clients_are_interrupted(closed_port: int) -> None:
    """A wait of ten minutes ends when the event is set."""
    flag = Flag()
    client = Redis(port=closed_port, policy=redis_service.policy.with_backoff(MINUTES).with_timeout(3600))
    with forbear.stop_on(flag), pytest.raises(redis.ConnectionError) as caught:
        client.get("k")
    found = forbear.report(caught.value)
    assert found is not None
    assert (found.reason, found.count) == (Reason.STOPPED, 1)


def test_waits_of_interceptors_are_interrupted() -> None:
    """The error of the call is raised."""
    flag = Flag()
    interceptor: Any = RetryInterceptor(rfc9110.policy.with_backoff(MINUTES).with_timeout(3600), safe=["t.T/Say"])
    with running() as server, grpc.insecure_channel(server.target) as plain, forbear.stop_on(flag):
        server.fail(grpc.StatusCode.UNAVAILABLE)
        channel: Any = grpc.intercept_channel(plain, interceptor)
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/t.T/Say")(b"a")
        assert len(server.calls) == 1
    assert forbear.report(caught.value) is not None
