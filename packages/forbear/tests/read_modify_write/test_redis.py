"""WATCH and MULTI against a real Valkey whose connections are cut: each increment is made once, or its writer told."""

import contextvars
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.report import report
from forbear.policy import Policy
from forbear.read_modify_write import update
from forbear.run.runtime import FastClock, current
from forbear.testing.proxy import Proxy, at_random
from forbear.testing.valkey import valkey_server

FACTOR = 500
POLICY = Policy(
    (redis.ConnectionError, redis.TimeoutError, redis.WatchError),
    Limits(attempts=None, timeout=100 * FACTOR),
    Exponential(initial=1, maximum=64),
)

Count = dict[str, Any]


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    """The Unix socket of a server."""
    with valkey_server() as socket:
        yield socket


def is_conflict(error: Exception) -> bool:
    """Return whether somebody else wrote; redis-py raises the same for a connection that was lost under WATCH."""
    return isinstance(error, redis.WatchError) and not isinstance(
        error.__context__, redis.ConnectionError | redis.TimeoutError
    )


def increment(port: int, token: str, *, knows: bool) -> Exception | None:
    """Increment the counter over the proxy, with the writer's token alongside; the error if there was one."""
    with redis.Redis(port=port, retry=Retry(NoBackoff(), 0), socket_timeout=20) as client, client.pipeline() as pipe:

        def read() -> Count:
            pipe.reset()
            pipe.watch("counter")
            found: Count = json.loads(pipe.get("counter") or "")
            return found

        def write(count: Count) -> None:
            pipe.multi()
            pipe.set("counter", json.dumps(count))
            pipe.execute()

        try:
            update(
                read=read,
                modify=lambda count: {"value": count["value"] + 1, "tokens": [*count["tokens"], token]},
                write=write,
                conflict=is_conflict,
                mine=(lambda count: token in count["tokens"]) if knows else None,
                policy=POLICY,
            )
        except redis.RedisError as error:
            return error
    return None


@pytest.mark.parametrize("knows", [True, False], ids=["mine", "no-mine"])
def test_fifty_writers_lose_no_increment(path: str, knows: bool) -> None:
    """Fifty writers, each over a connection that is cut now and then, on the way there or on the way back."""
    with redis.Redis(unix_socket_path=path) as server:
        server.set("counter", json.dumps({"value": 0, "tokens": []}))
        clock = current.set(FastClock(FACTOR))
        with Proxy(path, at_random(0.02, seed=11)) as proxy, ThreadPoolExecutor(50) as pool:
            contexts = [contextvars.copy_context() for _ in range(50)]
            runs = [
                pool.submit(context.run, increment, proxy.port, f"{n}", knows=knows)
                for n, context in enumerate(contexts)
            ]
        current.reset(clock)
        count: Count = json.loads(server.get("counter") or "")
    errors = {f"{n}": run.result() for n, run in enumerate(runs)}
    assert count["value"] == len(count["tokens"]) == len(set(count["tokens"]))
    assert set(count["tokens"]) >= {token for token, error in errors.items() if error is None}
    assert min(proxy.cuts["requests"], proxy.cuts["responses"]) > 5
    failed = [error for error in errors.values() if error is not None]
    if knows:
        assert failed == []
        assert count["value"] == 50
    else:
        assert failed
        for error in failed:
            found = report(error)
            assert found is not None
            assert found.maybe_done
