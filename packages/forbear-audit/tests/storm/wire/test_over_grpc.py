"""Calls over gRPC, sync and asyncio, meet every fault below the retries of gRPC itself."""

import json
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest

from forbear_audit.storm import storm
from forbear_audit.storm.observe import StormLimits, observing
from forbear_testkit.clients.google import protos
from forbear_testkit.testing.rpc_orders import RpcOrders, rpc_orders

ORDER, WATCH, COLLECT, CHAT = (f"/shop.Orders/{name}" for name in ("Order", "Watch", "Collect", "Chat"))
RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.01s",
                "maxBackoff": "0.01s",
                "backoffMultiplier": 1,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
OPTIONS = [("grpc.service_config", json.dumps(RETRIES))]


@pytest.fixture(scope="module")
def server() -> Generator[RpcOrders]:
    """Run a server for all tests of this module."""
    with rpc_orders() as server:
        yield server


def order(channel: Any) -> None:
    """Make an order by each form of the call."""
    method = channel.unary_unary(ORDER, None, None)
    assert method(b"", timeout=5) == b"order"


def ordered_with_call(channel: Any) -> None:
    """Make an order, and look at its call."""
    response, call = channel.unary_unary(ORDER, None, None).with_call(b"", timeout=5, metadata=(("name", "tea"),))
    assert (response, call.code()) == (b"order", grpc.StatusCode.OK)


def ordered_later(channel: Any) -> None:
    """Make an order by a future."""
    assert channel.unary_unary(ORDER, None, None).future(b"", 5).result() == b"order"


def watched(channel: Any) -> None:
    """Read a stream of orders."""
    assert list(channel.unary_stream(WATCH, None, None)(b"", timeout=5)) == [b"order", b"second", b"third"]


def collected(channel: Any) -> None:
    """Send a stream of orders."""
    assert channel.stream_unary(COLLECT, None, None)(iter([b"", b""]), timeout=5) == b"order"


ENDS = {
    "lost": ("UNAVAILABLE", 1),
    "refused": ("UNAVAILABLE", 0),
    "503": ("UNAVAILABLE", 0),
    "429": ("RESOURCE_EXHAUSTED", 0),
    "slow": ("DEADLINE_EXCEEDED", 1),
    "cut": ("UNAVAILABLE", 1),
}


@pytest.mark.parametrize(
    ("function", "label"),
    [(order, ORDER), (ordered_with_call, ORDER), (ordered_later, ORDER), (watched, WATCH), (collected, COLLECT)],
)
def test_each_fault_ends_a_call_with_its_code(server: RpcOrders, function: Any, label: str) -> None:
    """Each fault ends the call with its code, and the server has executed it where the fault says so."""
    for fault, (code, executed) in ENDS.items():
        if fault == "cut" and function is not watched:
            continue
        seen: list[grpc.RpcError] = []
        before = server.count()
        report = storm(noting(server, function, seen), effects=server.count, only=f"{label}#1:{fault}")
        assert [each.code().name for each in seen] == [code], fault
        assert server.count() - before == 2 + executed, fault
        assert [each.kind for each in report.findings] == (["lost"] if fault == "refused" else []), fault
        assert "forbear-storm" not in server.seen[-1]


def noting(server: RpcOrders, function: Any, seen: list[grpc.RpcError]) -> Callable[[], None]:
    """Return a function that makes a channel and the calls, and notes their error."""

    def call() -> None:
        with grpc.insecure_channel(server.target) as channel:
            try:
                function(channel)
            except grpc.RpcError as error:
                seen.append(error)
                raise

    return call


def test_all_faults_of_a_stream(server: RpcOrders) -> None:
    """A stream of responses has all faults, a call with two streams only those that are not sent."""

    def both() -> None:
        with grpc.insecure_channel(server.target) as channel:
            watched(channel)
            assert len(list(channel.stream_stream(CHAT, None, None)(iter([b""]), timeout=5))) == 3

    report = storm(both, effects=server.count)
    assert report.calls == (f"{WATCH}#1", f"{CHAT}#1")
    assert {each.kind for each in report.findings} == {"lost"}
    assert report.runs == 9 + 5


def test_service_config(server: RpcOrders) -> None:
    """Retries that a service config asks for are seen, over a channel that was made before the storm."""
    with grpc.insecure_channel(server.target, OPTIONS) as channel:
        report = storm(lambda: order(channel), effects=server.count, faults=["lost", "429", "503"], attempts=2)
    kinds = {(each.fault.partition("#")[2], each.kind) for each in report.findings}
    assert kinds == {("1:lost", "duplicated"), ("1+:lost", "duplicated"), ("1+:lost", "many"), ("1+:503", "many")}
    assert report.findings[0].site.rpartition(":")[0].endswith("tests/storm/wire/test_over_grpc.py")


@pytest.mark.parametrize(("method", "kinds"), [(ORDER, {"suspected"}), ("/shop.v1.Orders/Cancel", set())])
def test_what_its_definition_calls_idempotent(server: RpcOrders, method: str, kinds: set[str]) -> None:
    """A second execution of it is no finding: its annotation allows it."""
    protos.load()
    with grpc.insecure_channel(server.target, OPTIONS) as channel:
        call: Any = channel.unary_unary(method, None, None)
        report = storm(lambda: call(b"", timeout=5), only=f"{method}#1:lost")
    assert {each.kind for each in report.findings} == kinds


def test_the_frames_of_the_user(server: RpcOrders) -> None:
    """The proxy's thread sends a call, but its frames are those of the user's code: a plan finds its places."""
    with observing(None, StormLimits(10, 10)) as seen, grpc.insecure_channel(server.target) as channel:
        order(channel)
    (call,) = seen.calls
    assert {file for file, _ in call.frames} >= {__file__}
    assert (__file__, order.__code__.co_firstlineno + 3) in call.frames


def test_an_unknown_rpc_is_unsafe(server: RpcOrders) -> None:
    """An RPC that no table knows is unsafe; one of Google's is judged by its table, and a health check is a read."""

    def kinds(label: str) -> list[str]:
        with grpc.insecure_channel(server.target, OPTIONS) as channel:
            method: Any = channel.unary_unary(label, None, None)
            report = storm(partial(method, b"", timeout=5), only=f"{label}#1:lost")
        return [each.kind for each in report.findings]

    assert kinds(ORDER) == ["suspected"]
    assert kinds("/shop.Orders/GetOrder") == ["doubted"]
    assert kinds("/google.storage.v2.Storage/GetBucket") == []
    assert kinds("/grpc.health.v1.Health/Check") == []


def test_errors_of_the_server(server: RpcOrders) -> None:
    """Errors and closed channels are what they are without a storm."""

    def call() -> None:
        channel = grpc.insecure_channel(server.target)
        with pytest.raises(grpc.RpcError, match="no order"):
            channel.unary_unary("/shop.Orders/Missing", None, None)(b"")
        channel.close()
        with pytest.raises(ValueError, match="closed channel"):
            order(channel)

    assert storm(call, faults=["503"], only="/shop.Orders/Missing#2:503").calls == ("/shop.Orders/Missing#1",)


@pytest.mark.parametrize("retries", [True, False])
def test_calls_of_grpc_aio_meet_the_same_faults(server: RpcOrders, retries: bool) -> None:
    """Calls of grpc.aio meet the same faults, and its retries are seen."""
    seen: list[grpc.RpcError] = []

    async def call() -> None:
        async with grpc.aio.insecure_channel(server.target, OPTIONS if retries else None) as channel:
            try:
                assert (
                    await channel.unary_unary(ORDER, None, None)(b"", timeout=5, metadata=(("name", "tea"),))
                    == b"order"
                )
                assert [each async for each in channel.unary_stream(WATCH, None, None)(b"")] == [
                    b"order",
                    b"second",
                    b"third",
                ]
            except grpc.RpcError as error:
                seen.append(error)
                raise

    report = storm(call, effects=server.count, faults=["lost", "refused", "cut"])
    kinds = {each.fault: each.kind for each in report.findings}
    doubled = {f"{label}#1{plus}:lost": "duplicated" for label in (ORDER, WATCH) for plus in ("", "+")}
    given_up = {f"{label}#1:refused": "lost" for label in (ORDER, WATCH)}
    assert kinds == (doubled if retries else given_up)
    assert {each.code().name for each in seen} == {"UNAVAILABLE"}
