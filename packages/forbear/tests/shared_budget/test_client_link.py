"""A shared budget on a cluster and behind a Sentinel, through client objects."""

from typing import Any

import pytest
import redis
import valkey
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from forbear.shared_budget.budget import SharedBudget
from forbear_testkit.clients.redis.nodes import running_cluster


@pytest.mark.soak
@pytest.mark.usefixtures("patient")
def test_a_cluster() -> None:
    """The key of a bucket lies on one node, which the client finds; the others are left alone."""
    with running_cluster() as ports:
        with redis.RedisCluster(host="127.0.0.1", port=ports[0], retry=Retry(NoBackoff(), 0)) as client:
            budgets = [SharedBudget(client, name, capacity=20) for name in ("a", "b", "c", "d")]
            for budget in budgets:
                budget.check()
                assert [budget.take() for _ in range(3)] == [True, True, False]
                budget._share.close()
        repeating = valkey.ValkeyCluster(host="127.0.0.1", port=ports[0])
        with repeating, pytest.raises(ValueError, match="with 3 retries"):
            SharedBudget(repeating, "a")


def test_a_sentinels_client_is_taken_without_retries() -> None:
    """`master_for` makes a plain client whose pool asks the Sentinel."""
    made: Any = redis.Sentinel
    sentinel = made([("localhost", 1)])
    client = sentinel.master_for("mine", retry=Retry(NoBackoff(), 0))
    assert isinstance(client.connection_pool, SentinelConnectionPool)
    assert repr(SharedBudget(client, "x")) == "SharedBudget('Redis', 'x', capacity=100, deposit=0.1)"


class OneMethod:
    """A client of no library, with what a budget reads of one."""

    cluster_error_retry_attempts = 3

    def execute_command(self, *words: object) -> object:
        """Do nothing."""


class Awaited:
    """A client whose method is async, though the name of its module does not say so."""

    async def execute_command(self, *words: object) -> object:
        """Do nothing."""


@pytest.mark.parametrize(
    ("client", "error", "text"),
    [
        (OneMethod(), ValueError, r"got \S*OneMethod with 3 retries"),
        (Awaited(), TypeError, r"must be a sync client, which serves async code too, got \S*Awaited;"),
        (object(), TypeError, "got an object of type builtins.object"),
    ],
    ids=["repeats", "async", "no client"],
)
def test_clients_that_are_refused(client: object, error: type[Exception], text: str) -> None:
    """The text names the class, and how it repeats."""
    with pytest.raises(error, match=text):
        SharedBudget(client, "x")
