"""The policy for data commands: its figures, and what it does to a function that it decorates."""

import pickle
import subprocess
import sys

import pytest
import redis

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.services import redis as redis_service
from forbear.services.redis import policy, verdict_of_exception
from forbear.testing import virtual_time


def test_the_figures() -> None:
    """Ten retries in ten seconds, full jitter under 20 ms doubled up to 1 s."""
    assert policy.limits == Limits(attempts=11, timeout=10)
    assert policy.backoff == Exponential(initial=0.02, multiplier=2, maximum=1, jitter="full")
    steps = [policy.backoff.delay(n, 1, None) for n in range(10)]
    assert steps == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1, 1, 1, 1])
    assert sum(steps) < 10
    assert policy.on is verdict_of_exception
    assert not policy.repeats_calls
    assert policy is redis_service.policy
    assert pickle.loads(pickle.dumps(policy)) == policy


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (redis.ConnectionError("Error 111 connecting to localhost:6379. Connection refused."), 11),
        (redis.BusyLoadingError("Redis is loading the dataset in memory"), 11),
        (redis.ConnectionError("Connection closed by server."), 1),
        (redis.TimeoutError("Timeout reading from localhost:6379"), 1),
        (redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), 1),
        (redis.WatchError("Watched variable changed."), 1),
    ],
    ids=["refused", "loading", "closed", "timeout", "wrong type", "conflict"],
)
def test_a_decorated_function_is_repeated_only_where_nothing_was_executed(error: Exception, calls: int) -> None:
    """Nobody can see which command the function sends."""
    made: list[None] = []

    @policy
    def command() -> None:
        made.append(None)
        raise error

    with virtual_time(), pytest.raises(type(error)):
        command()
    assert len(made) == calls


def test_a_read_is_repeated_after_a_lost_response() -> None:
    """A function that reads is repeated after a lost response, too."""
    lost = [redis.ConnectionError("Connection closed by server.")] * 3

    @policy.replace(repeatable=True)
    def read() -> str:
        if lost:
            raise lost.pop()
        return "value"

    with virtual_time():
        assert read() == "value"


def test_names_are_loaded_when_they_are_used() -> None:
    """The module has all exported names, and no others."""
    for name in redis_service.__all__:
        assert getattr(redis_service, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'unheard'"):
        redis_service.unheard  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_is_loaded_before_it_is_used() -> None:
    """Importing the service costs neither the table nor a client library."""
    code = """
import sys
from forbear.services import redis
assert not {"forbear.services.redis.table", "redis"} & set(sys.modules)
assert redis.classify(["GET", "k"]).repeatable
assert not {"redis", "valkey"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
