"""A call that is cut off, or the read that settles it: a run around it knows that it may have been executed."""

import asyncio
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import secretmanager_v1

import forbear
from forbear.clients.google import AsyncRetry, Retry
from forbear.exchange.grpc import Rpc
from forbear.exchange.settling import read_settle
from forbear.grpc.vouch import RpcVouch
from forbear.testing import virtual_time
from forbear_testkit.clients.google.secret_server import SERVICE

NAME = "projects/p/secrets/s"
SECRET: dict[str, Any] = {"labels": {"by": "us"}, "replication": {"automatic": {}}}


class Cut(BaseException):
    """The errors that interrupt a call."""


@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "asyncio"])
@pytest.mark.parametrize("place", ["call", "read"])
def test_an_interrupt_leaves_the_call_in_doubt(place: str, awaits: bool) -> None:
    """A run around the call settles the conflict of its next attempt, wherever the last one was cut off."""
    name = f"{SERVICE}/CreateSecret"
    message = secretmanager_v1.CreateSecretRequest(parent="projects/p", secret_id="s", secret=SECRET)
    places = [place]
    sent = list[str]()
    errors: Any = exceptions
    lost, there = errors.ServiceUnavailable("lost"), errors.AlreadyExists("it is there")

    def call(_: Any) -> Any:
        sent.append("create")
        if len(sent) == 1:
            raise lost
        cut_off("call")
        raise there

    def read(*_: Any, **__: Any) -> Any:
        cut_off("read")
        return secretmanager_v1.Secret(name=NAME, **SECRET)

    def cut_off(here: str) -> None:
        if here in places:
            places.clear()
            raise Cut

    async def acall(request: Any) -> Any:
        return call(request)

    async def aread(*_: Any, **__: Any) -> Any:
        return read()

    rpc = Rpc(name, forbear.retry(on=forbear.transient, attempts=3), vouch=RpcVouch((), settle=read_settle(True)))
    kind: Any = AsyncRetry if awaits else Retry
    retried = kind(rpc, stubs={f"/{SERVICE}/GetSecret": aread if awaits else read})(acall if awaits else call)

    @forbear.retry(on=OSError, attempts=2, timeout=600)
    def work() -> Any:
        try:
            return asyncio.run(retried(message), debug=False) if awaits else retried(message)
        except Cut:
            raise OSError("cut off") from None

    with virtual_time(seed=1):
        assert work().name == NAME
