"""Retries inside redis-py, as subclasses of its clients: sync and asyncio, standalone, Sentinel and cluster."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py declares only some of its types.

try:
    import redis
except ImportError as error:
    raise ImportError('forbear.clients.redis needs redis-py; install it with: pip install "forbear[redis]"') from error

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis.asyncio.cluster
import redis.cluster
from redis import client as _sync
from redis.asyncio import client as _async
from redis.asyncio.connection import Connection as AsyncConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from forbear.clients._redis.aio import (
    AsyncClientMixin,
    AsyncClusterMixin,
    AsyncPipelineMixin,
    AsyncPubSubMixin,
    AsyncTransactionsMixin,
)
from forbear.clients._redis.client import ClientMixin, ClusterMixin, PipelineMixin, PubSubMixin, TransactionsMixin
from forbear.clients._redis.cluster import asend_pipeline, guard_node, send_pipeline
from forbear.clients.redis.atransactions import AsyncTransaction
from forbear.clients.redis.transactions import Transaction
from forbear.exchange.redis.descriptions import promised
from forbear.exchange.redis.pipelines import PipelineState
from forbear.exchange.redis.settings import RedisSettings

__all__ = [
    "AsyncPipeline",
    "AsyncPubSub",
    "AsyncRedis",
    "AsyncRedisCluster",
    "Pipeline",
    "PubSub",
    "Redis",
    "RedisCluster",
    "promised",
]

_RAISED = (redis.RedisError, RedisClusterException)


P = TypeVar("P")


class Pipeline(PipelineMixin, _sync.Pipeline):
    """A pipeline of a `Redis`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.

    >>> with Redis(unix_socket_path=valkey) as client, client.pipeline() as pipe:
    ...     pipe.set("greeting", "hello").get("greeting").execute()
    [True, b'hello']
    """

    _conflict = redis.WatchError


class PubSub(PubSubMixin, _sync.PubSub):
    """Subscriptions of a `Redis`. Messages that are published while it connects again are lost.

    >>> with Redis(unix_socket_path=valkey) as client, client.pubsub() as messages:
    ...     messages.subscribe("news")
    ...     messages.get_message(timeout=1)["type"]
    'subscribe'
    """


# The library names its own class where the mixins return Self, and declares `command_info` of asyncio clients twice.


class Redis(ClientMixin[Pipeline, PubSub], redis.Redis):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A `redis.Redis` that retries what may be repeated: `Redis(host="localhost")` takes all the same arguments.

    Each command is looked up in the table of `forbear.services.redis`. A command that was certainly not executed is
    sent again; one whose response was lost is sent again only if executing it twice is harmless. `policy` decides how
    long to hold back and when to stop, by default `forbear.services.redis.policy`; None sends everything once. A policy
    of your own brings its limits and its `on`; the table stays. Its `attempt_timeout` (seconds) becomes the timeouts of
    the sockets. The keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change it. `safe` names
    commands that may be executed twice, whatever the table says: "INCR", or several names.

    The library's own retries are off, and asking for them is a TypeError: they repeat any command. A `connection_pool`
    has to be without them, too (ValueError).

    >>> with Redis(unix_socket_path=valkey, attempts=3, safe="INCR") as client:
    ...     client.incr("visits")
    1
    """

    _raised = _RAISED
    _pipeline_class = Pipeline
    _pubsub_class = PubSub
    _switch_retries_off = staticmethod(lambda: {"retry": Retry(NoBackoff(), 0)})


class AsyncPipeline(AsyncPipelineMixin, _async.Pipeline):  # type: ignore[misc]
    """A pipeline of an `AsyncRedis`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.
    Example: see `Pipeline`.
    """

    _conflict = redis.WatchError


class AsyncPubSub(AsyncPubSubMixin, _async.PubSub):
    """Subscriptions of an `AsyncRedis`. Messages are lost while it connects again. Example: see `PubSub`."""


class AsyncRedis(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
    AsyncClientMixin[AsyncPipeline, AsyncPubSub], _async.Redis
):
    """A `redis.asyncio.Redis` that retries as `Redis` does: `AsyncRedis(host="localhost")` takes the same arguments.

    The policy's `attempt_timeout` (seconds) interrupts an attempt, whatever it is waiting for. Example: see `Redis`.
    """

    _raised = _RAISED
    _pipeline_class = AsyncPipeline
    _pubsub_class = AsyncPubSub
    _switch_retries_off = staticmethod(lambda: {"retry": AsyncRetry(NoBackoff(), 0)})


class RedisCluster(ClusterMixin, TransactionsMixin, redis.cluster.RedisCluster):
    """A `redis.RedisCluster` that retries as `Redis` does and takes all the same arguments.

    The library follows redirections and learns the nodes again. The table decides whether a command is sent again.
    A command for several nodes counts as executed once one of them has it. Example: see `Redis`.
    """

    _switch_retries_off = staticmethod(lambda: {"retry": Retry(NoBackoff(), 0)})
    _lost = (redis.ConnectionError, redis.TimeoutError)
    _raised = _RAISED

    def get_redis_connection(self, node: redis.cluster.ClusterNode) -> Any:
        return guard_node(super().get_redis_connection(node))

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> redis.cluster.ClusterPipeline:
        """Return a pipeline of which only commands that may be repeated or were not executed are sent again.

        If `transaction` is true, it sends its commands between MULTI and EXEC on one node.
        """
        self._refuse_later_retries()
        make: Callable[..., redis.cluster.ClusterPipeline] = super().pipeline
        return _with_strategy(make(transaction, shard_hint), self.settings, Transaction if transaction else _Pipeline)


class AsyncRedisCluster(  # type: ignore[misc]
    AsyncClusterMixin, AsyncTransactionsMixin, redis.asyncio.cluster.RedisCluster
):
    """A `redis.asyncio.RedisCluster` that retries as `RedisCluster` does, with all arguments. Example: see `Redis`."""

    _switch_retries_off = staticmethod(lambda: {"retry": AsyncRetry(NoBackoff(), 0)})
    _lost = (redis.ConnectionError, redis.TimeoutError)
    _raised = _RAISED
    _connection = AsyncConnection

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> redis.asyncio.cluster.ClusterPipeline:
        self._refuse_later_retries()
        pipe: redis.asyncio.cluster.ClusterPipeline = super().pipeline(transaction, shard_hint)
        return _with_strategy(pipe, self.settings, AsyncTransaction if transaction else _AsyncPipeline)


def _with_strategy(pipe: P, settings: RedisSettings, strategy: Callable[[Any], object]) -> P:
    """Give the pipeline a new state, and make `strategy(pipe)` the object by which it executes; return the pipeline."""
    changed: Any = pipe
    changed.state = PipelineState(settings, redis.WatchError)
    changed._execution_strategy = strategy(pipe)
    return pipe


class _Pipeline(redis.cluster.PipelineStrategy):
    """Sends commands of a pipeline to their nodes together, then failed ones that may be repeated each by itself."""

    def send_cluster_commands(
        self, stack: Sequence[Any], raise_on_error: bool = True, allow_redirections: bool = True
    ) -> list[Any]:
        pipe: Any = self._pipe
        send_all, send_one = self._send_cluster_commands, pipe.parent_execute_command
        return send_pipeline(pipe.state.settings, stack, send_all, send_one, raise_on_error=raise_on_error)


class _AsyncPipeline(redis.asyncio.cluster.PipelineStrategy):
    """The asyncio form of `_Pipeline`: commands go to their nodes together, then failed ones each by itself."""

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        queue, self._command_queue = self._command_queue, []
        return await asend_pipeline(self._pipe.cluster_client, queue, self._execute, raise_on_error=raise_on_error)
