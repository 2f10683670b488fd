"""Budgets beside the libraries they come from: botocore's own quota, and gRPC's throttle on a real channel."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from botocore.retries.quota import RetryQuota
from botocore.retries.standard import RetryQuotaChecker
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.budget import MICRO
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.run.budget import Budget
from forbear.run.spending import Spending

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


class Detector:
    """botocore's question whether an error is one of throttling, answered by the context."""

    def is_throttling_error_from_context(self, context: Any) -> bool:
        """Return what the test wants."""
        return bool(context.throttled)


def ignore(**values: object) -> None:
    """Take botocore's note that the quota was reached."""


@given(st.lists(st.tuples(st.lists(st.booleans(), max_size=6), st.booleans()), max_size=80))
def test_the_quota_is_botocores(calls: list[tuple[list[bool], bool]]) -> None:
    """Calls with failures, throttled or not, and an end: both grant the same retries and have the same tokens left."""
    quota = RetryQuota()
    theirs = RetryQuotaChecker(quota, Detector())
    budget = Budget.aws()
    for failures, succeeds in calls:
        metadata: dict[str, Any] = {}
        ours = Spending(budget)
        refused = False
        for throttled in failures:
            context = SimpleNamespace(throttled=throttled, request_context=metadata, add_retry_metadata=ignore)
            verdict = ours.failed(THROTTLED if throttled else TRANSIENT, None)
            granted = ours.take(verdict)
            assert theirs.acquire_retry_quota(context) is granted
            refused = not granted
            if refused:
                break
        if succeeds and not refused:
            theirs.release_retry_quota(metadata, SimpleNamespace(status_code=200))
            ours.succeeded(retried=bool(failures))
        assert budget._state[0] == quota.available_capacity * MICRO


@pytest.mark.parametrize(("tokens", "ratio"), [(10, 0.1), (4, 0.5)])
def test_the_throttle_is_grpcs(tokens: int, ratio: float) -> None:
    """Calls that fail, then succeed, then fail: a real channel makes exactly as many retries as the budget grants."""
    outcomes = [False] * 8 + [True] * 12 + [False] * 8 + [True] * 70 + [False] * 5
    config = {
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
        ],
        "retryThrottling": {"maxTokens": tokens, "tokenRatio": ratio},
    }
    attempts: list[bool] = []
    working: list[bool] = []

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        attempts.append(working[-1])
        if not working[-1]:
            context.abort(grpc.StatusCode.UNAVAILABLE, "down")
        return b""

    class Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg] # not generic at runtime
        """A handler of all methods."""

        def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
            """Return the handler."""
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    theirs: list[int] = []
    codes: set[grpc.StatusCode] = set()
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.service_config", json.dumps(config))]) as channel:
        call = channel.unary_unary("/a.B/C", bytes, bytes)
        for works in outcomes:
            working.append(works)
            before = len(attempts)
            try:
                call(b"", timeout=5)
            except grpc.RpcError as error:
                codes.add(error.code())
            theirs.append(len(attempts) - before)
    server.stop(0).wait()
    assert codes == {grpc.StatusCode.UNAVAILABLE}
    budget = Budget.grpc(tokens, ratio)
    ours: list[int] = []
    for works in outcomes:
        spending, count = Spending(budget), 1
        if works:
            spending.succeeded(retried=False)
        else:
            while spending.failed(TRANSIENT, None) is TRANSIENT and count < 3 and spending.take(TRANSIENT):
                count += 1
        ours.append(count)
    assert ours == theirs
