"""A real channel takes the service config and obeys it: what the table allows is retried, the rest is not."""

import json
import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any, cast

import grpc
import pytest

from forbear import export
from forbear.core.backoff import Constant, Exponential
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.services import cloud_storage, iam, memorystore

STORAGE = "google.storage.v2.Storage"
QUICK = Exponential(initial=0.002, maximum=0.004, jitter="none")


class Server(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs alone
    """Answers each method with UNAVAILABLE so many times, then with an empty message; counts the calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """One handler for all methods."""
        name = handler_call_details.method.rpartition("/")[2]

        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            with self._lock:
                self.calls[name] = self.calls.get(name, 0) + 1
                failed = self.calls[name] <= self.failures
            if failed:
                context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
            return b""

        return grpc.unary_unary_rpc_method_handler(handle)


@pytest.fixture
def address_and_server() -> Iterator[tuple[str, Server]]:
    """A server on loopback that fails twice."""
    handler = Server(failures=2)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", handler
    server.stop(None).wait()


def call(address: str, config: str, method: str) -> grpc.StatusCode:
    """Call `method` on a channel with the config, and return its status."""
    options = (("grpc.service_config", config), ("grpc.enable_retries", 1))
    with grpc.insecure_channel(address, options) as channel:
        try:
            channel.unary_unary(f"/{method}", bytes, bytes)(b"", timeout=10)
        except grpc.RpcError as error:
            return cast("grpc.Call", error).code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("method", "calls", "end"),
    [
        ("GetObject", 3, grpc.StatusCode.OK),
        ("CreateBucket", 3, grpc.StatusCode.OK),
        ("DeleteObject", 1, grpc.StatusCode.UNAVAILABLE),
        ("UpdateObject", 1, grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_a_channel_retries_what_the_table_always_allows(
    method: str, calls: int, end: grpc.StatusCode, address_and_server: tuple[str, Server]
) -> None:
    """Reads and named creates; not what is safe under a condition only, for a config sees none."""
    address, server = address_and_server
    config = export.grpc(cloud_storage.policy.with_backoff(QUICK)).value
    assert call(address, config, f"{STORAGE}/{method}") is end
    assert server.calls == {method: calls}


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (retry(on=OSError, attempts=3, backoff=QUICK, repeatable=True), 3),
        (retry(on=OSError, attempts=2, backoff=QUICK, repeatable=True), 2),
        (retry(on=OSError, attempts=1, repeatable=True), 1),
        (retry(on=OSError, attempts=3, backoff=QUICK, repeatable=False), 1),
        (retry(on=OSError, attempts=3, backoff=QUICK), 1),
    ],
)
def test_a_channel_counts_attempts_as_the_policy_does(
    policy: Policy, calls: int, address_and_server: tuple[str, Server]
) -> None:
    """The first call included; RPCs that nobody calls repeatable are not retried."""
    address, server = address_and_server
    call(address, export.grpc(policy).value, "app.Orders/Pay")
    assert server.calls == {"Pay": calls}


def test_whoever_names_an_rpc_says_that_it_may_be_repeated(address_and_server: tuple[str, Server]) -> None:
    """Of a policy without a service, the named RPCs are retried, and no loss is listed."""
    address, server = address_and_server
    config, losses = export.grpc(retry(on=OSError, attempts=3, backoff=QUICK), ["app.Orders/Find"])
    call(address, config, "app.Orders/Find")
    call(address, config, "app.Orders/Pay")
    assert server.calls == {"Find": 3, "Pay": 1}
    assert not [loss for loss in losses if loss.startswith("safety")]


def test_a_channel_obeys_the_throttle(address_and_server: tuple[str, Server]) -> None:
    """With half of the tokens gone after the first failure, there is no retry."""
    address, server = address_and_server
    config, losses = export.grpc(retry(on=OSError, backoff=QUICK, budget=Budget.grpc(max_tokens=2, token_ratio=0.1)))
    assert json.loads(config)["retryThrottling"] == {"maxTokens": 2, "tokenRatio": 0.1}
    assert call(address, config, "app.Orders/Pay") is grpc.StatusCode.UNAVAILABLE
    assert server.calls == {"Pay": 1}
    assert not [loss for loss in losses if "budget" in loss]


def names(config: dict[str, Any]) -> set[str]:
    """The methods of a part of a config."""
    return {f"{name['service']}/{name['method']}" for name in config["name"]}


def test_what_stands_in_it() -> None:
    """The mean waits, at most five attempts, the codes; streams have no timeout, for it would end long ones."""
    config, losses = export.grpc(cloud_storage.policy)
    unary, streams = json.loads(config)["methodConfig"]
    assert unary["timeout"] == "600s"
    assert unary["retryPolicy"] == {
        "maxAttempts": 5,
        "initialBackoff": "1.5s",
        "maxBackoff": "48s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE"],
    }
    assert "timeout" not in streams
    assert f"{STORAGE}/ReadObject" in names(streams)
    assert f"{STORAGE}/GetObject" in names(unary)
    told = "\n".join(losses)
    assert "DeleteObject" in told
    assert "attempts: gRPC makes at most 5 attempts" in told


def test_other_services_and_a_choice_of_methods() -> None:
    """IAM and Memorystore have RPCs, too; and a config may be for some of them only."""
    (config,) = json.loads(export.grpc(iam.documented).value)["methodConfig"]
    assert "google.iam.admin.v1.IAM/GetRole" in names(config)
    assert "RESOURCE_EXHAUSTED" not in config["retryPolicy"]["retryableStatusCodes"]
    (config,) = json.loads(export.grpc(memorystore.policy).value)["methodConfig"]
    assert "google.cloud.redis.v1.CloudRedis/ListInstances" in names(config)
    (config,) = json.loads(export.grpc(cloud_storage.policy, [f"{STORAGE}/GetObject"]).value)["methodConfig"]
    assert names(config) == {f"{STORAGE}/GetObject"}
    (config,) = json.loads(export.grpc(retry(on=OSError), ["app.Orders"]).value)["methodConfig"]
    assert config["name"] == [{"service": "app.Orders"}]


def test_another_budget_is_a_loss() -> None:
    """gRPC knows one kind only."""
    losses = export.grpc(retry(on=OSError, budget=Budget())).losses
    assert [loss for loss in losses if loss.startswith("budget=") and "Budget.grpc()" in loss]


@pytest.mark.parametrize(
    "policy",
    [
        retry(on=OSError, backoff=Constant(0)),
        retry(on=OSError, backoff=Exponential(1e-6, maximum=1e12), timeout=1e-4),
        retry(on=OSError, budget=Budget.grpc(0.4, 0.0001)),
        retry(on=OSError, budget=Budget.grpc(5000)),
    ],
)
def test_a_channel_takes_the_config_whatever_the_numbers(
    address_and_server: tuple[str, Server], policy: Policy
) -> None:
    """One that it refuses would fail every call; where a number had to give way, that is a loss."""
    address, server = address_and_server
    server.failures = 0
    config, losses = export.grpc(policy)
    assert call(address, config, "app.Orders/Pay") in (grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED)
    assert [loss for loss in losses if "at least 0.001 s" in loss or "instead" in loss]


def test_methods_are_taken_by_name(address_and_server: tuple[str, Server]) -> None:
    """With a slash or without, twice or once; what the service does not have is refused, and so is nothing at all."""
    address, _ = address_and_server
    pay = export.grpc(retry(on=OSError, backoff=QUICK), ["app.Orders/Pay", "/app.Orders/Pay"]).value
    assert call(address, pay, "app.Orders/Pay") is grpc.StatusCode.OK
    (config,) = json.loads(export.grpc(cloud_storage.policy, [f"/{STORAGE}/GetObject"]).value)["methodConfig"]
    assert names(config) == {f"{STORAGE}/GetObject"}
    with pytest.raises(ValueError, match=r"RPCs or services that cloud_storage has, got 'app\.Orders'"):
        export.grpc(cloud_storage.policy, ["app.Orders"])
    with pytest.raises(ValueError, match="at least one"):
        export.grpc(cloud_storage.policy, [])
    with pytest.raises(TypeError, match="got the string"):
        export.grpc(cloud_storage.policy, STORAGE)


def test_only_what_is_chosen_and_not_retried_is_a_loss() -> None:
    """A read has no condition that a config could not see."""
    assert not [loss for loss in export.grpc(cloud_storage.policy, [f"{STORAGE}/GetObject"]).losses if "safety" in loss]
    (loss,) = [x for x in export.grpc(cloud_storage.policy, [f"{STORAGE}/DeleteObject"]).losses if "safety" in x]
    assert loss.endswith("never retried: DeleteObject")
