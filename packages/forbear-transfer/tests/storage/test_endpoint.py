"""A host name that does not exist: a wrong endpoint is reported at once, and anything that may pass is retried."""

import socket
from typing import Any

import pytest

import forbear
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Wire, reply
from forbear_transfer import ANONYMOUS, Storage, Url
from forbear_transfer.wire.response import NotConnected

NO_NAME, NO_ADDRESS, AGAIN = (
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    socket.gaierror(socket.EAI_NODATA, "No address associated with hostname"),
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
)
ATTEMPTS = 3

pytestmark = pytest.mark.anyio


class Resolver:
    """A stand-in for getaddrinfo that raises `error` for names, and counts; with None it is the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: socket.gaierror | None = None
        self.lookups = 0
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.lookups += 1
        if self.error is not None:
            raise self.error
        return self._real(*args, **more)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    """The resolver of this test; no proxy is in the way."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return Resolver(monkeypatch)


def storing(endpoint: str) -> Storage:
    """Return a Storage that makes at most three attempts."""
    return Storage(endpoint=endpoint, credentials=ANONYMOUS, policy=cloud_storage.policy.with_attempts(ATTEMPTS))


@pytest.mark.parametrize(
    ("endpoint", "error", "lookups"),
    [
        ("https://gcs.invalid", NO_NAME, 1),
        ("http://gcs.invalid:4443", NO_ADDRESS, 1),
        ("https://gcs.invalid", AGAIN, ATTEMPTS),
        ("https://storage.googleapis.com", NO_NAME, ATTEMPTS),
        ("https://storage.googleapis.com", AGAIN, ATTEMPTS),
    ],
)
async def test_a_wrong_name_is_permanent(
    endpoint: str, error: socket.gaierror, lookups: int, resolver: Resolver
) -> None:
    """A name that does not exist is looked up once, unless it is Google's; a resolver that fails is asked again."""
    resolver.error = error
    with virtual_time() as time:
        async with storing(endpoint) as storage:
            with pytest.raises(NotConnected, match=str(error.strerror)) as caught:
                await storage.stat(Url("b", "o"))
        assert (resolver.lookups, time.slept == []) == (lookups, lookups == 1)
    if lookups == 1:
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("check the name of the host: `endpoint`")
    else:
        report = forbear.report(caught.value)
        assert report is not None
        assert report.count == ATTEMPTS


async def test_a_name_that_was_right_may_come_back(resolver: Resolver) -> None:
    """After a connection has been made by a name, its loss is retried: a VPN may be down for a while."""
    body = b'{"bucket":"b","name":"o","generation":"1","size":"0"}'
    with Wire(reply(200, body, "Connection: close")) as wire:
        with virtual_time() as time:
            async with storing(wire.url.replace("127.0.0.1", "localhost")) as storage:
                assert await storage.stat(Url("b", "o")) is not None
                resolver.error, resolver.lookups = NO_NAME, 0
                with pytest.raises(NotConnected):
                    await storage.stat(Url("b", "o"))
        assert (resolver.lookups, len(time.slept)) == (ATTEMPTS, ATTEMPTS - 1)


async def test_a_proxy_with_a_wrong_name(resolver: Resolver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a proxy that does not exist is reported at once, with the variables that choose the proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    resolver.error = NO_NAME
    with virtual_time():
        async with storing("https://gcs.invalid") as storage:
            with pytest.raises(NotConnected, match=r"the proxy proxy\.invalid:3128: Name or service") as caught:
                await storage.stat(Url("b", "o"))
    assert resolver.lookups == 1
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("check the proxy; ")
