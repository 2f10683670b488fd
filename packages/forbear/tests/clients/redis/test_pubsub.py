"""Subscriptions over connections that break are restored."""

import socket
from typing import Any

import pytest
import redis

import forbear
from forbear.core.report import report
from forbear.testing.proxy import Proxy
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.pubsub import done, heard


def test_a_subscription_outlives_its_connection(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The next message that is published after the break arrives, and the listener hears of the break."""
    cut = False
    events: list[forbear.events.Event] = []

    def cutting(request: bytes, response: bytes | None) -> bool:
        nonlocal cut
        lost = cut and response is not None
        cut = cut and not lost
        return lost

    async def steps(client: Any) -> list[bool]:
        nonlocal cut
        pubsub = client.pubsub()
        try:
            await done(pubsub.subscribe("c"))
            first = await heard(pubsub, server, b"first")
            cut = True
            server.publish("c", "second")  # lost with the connection
            return [first, await heard(pubsub, server, b"third")]
        finally:
            await done(pubsub.aclose() if flavour.is_async else pubsub.close())

    policy = AT_ONCE.with_on_event(events.append)
    with Proxy(path, cutting) as proxy, flavour.connect(proxy.port, policy=policy) as session:
        if flavour.is_async:
            arrived = session.run(steps)
        else:
            coroutine = steps(session.client)
            with pytest.raises(StopIteration) as stopped:
                coroutine.send(None)  # it never waits
            arrived = stopped.value.value
    assert arrived == [True, True]
    assert [type(event).__name__ for event in events] == ["Failed", "Scheduled", "Recovered"]


def test_a_server_that_is_gone(flavour: Flavour) -> None:
    """Subscribing ends by the limits of the policy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    def subscribe(client: Any) -> Any:
        return client.pubsub().subscribe("c")

    with (
        flavour.connect(port, policy=AT_ONCE.with_attempts(3)) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session.run(subscribe)
    result = report(caught.value)
    assert result is not None
    assert (result.operation, len(result.attempts)) == ("SUBSCRIBE", 3)


def test_without_a_policy_a_break_is_raised(flavour: Flavour, server: redis.Redis) -> None:
    """A client that sends everything once subscribes once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        flavour.connect(port, policy=None) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session.run(lambda client: client.pubsub().subscribe("c"))
    assert report(caught.value) is None
