"""A function around a client is not called again after what must not be executed twice, whatever fails later."""

from typing import Any

import pytest
import redis

import forbear
from forbear.events import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.redis.clusters import WITH_TRANSACTIONS, open_with, value
from forbear_testkit.clients.redis.flavours import Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import once, proxy

OUTER = forbear.retry(on=OSError, attempts=3, backoff=forbear.Constant(0))


def stop(step: Any, *args: Any) -> None:
    """Call a function that fails after `step` by an error of its own, and check that it was called once."""

    def call() -> None:
        step(*args)
        raise OSError("a later step failed")

    with virtual_time(), pytest.raises(OSError, match="a later step failed") as caught:
        OUTER.call(call)
    result = forbear.report(caught.value)
    assert result is not None
    assert result.reason is Reason.UNSAFE


def execute_with_wrong_type(session: Session, errors: Any, key: str) -> None:
    """Send a transaction of which the second command is refused, after the first was executed."""
    with pytest.raises(errors.ResponseError):
        session.execute([("INCRBY", key, 1), ("LPUSH", key, 1)], transaction=True)


def add_without_watch(session: Session, errors: Any, key: str) -> None:
    """Count up by `transaction()`, without a key to watch."""

    def queue(pipe: Any) -> None:
        pipe.incr(key)

    assert session("transaction", queue) == [1]


STEPS = pytest.mark.parametrize("step", [execute_with_wrong_type, add_without_watch])


@STEPS
def test_a_transaction_counts(flavour: Flavour, server: redis.Redis, path: str, step: Any) -> None:
    """A transaction that was executed, if only in part, is not executed again."""
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session:
        stop(step, session, flavour.errors, "k")
    assert server.get("k") == b"1"


@STEPS
@pytest.mark.parametrize("cluster", WITH_TRANSACTIONS, ids=lambda cluster: cluster.name)
def test_a_transaction_on_a_cluster_counts(cluster: Flavour, nodes: tuple[int, ...], step: Any) -> None:
    """The same on a cluster."""
    with proxied(nodes, once(), once()) as (_, options), open_with(cluster, options) as session:
        stop(step, session, cluster.errors, HERE)
    assert value(nodes, HERE) == 1


def test_a_refused_transaction_does_not_count(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """If EXEC was refused, or the only command of the transaction, then nothing was executed."""

    def refused(session: Session) -> None:
        for commands in ([("INCRBY", "k", 1), ("INCRBY", "k")], [("INCRBY", "text", 1)]):
            with pytest.raises(flavour.errors.ResponseError):
                session.execute(commands, transaction=True)
        raise OSError("a later step failed")

    server.set("text", "x")
    with proxy(path, once()) as seen, flavour.connect(seen.port) as session, virtual_time(), pytest.raises(OSError):  # noqa: PT011
        OUTER.call(refused, session)
    assert seen.executed.count("MULTI") == 6
    assert server.get("k") is None
