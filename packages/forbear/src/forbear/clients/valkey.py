"""Retries inside valkey-py, as subclasses of its clients: sync and asyncio, standalone, Sentinel and cluster."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# valkey-py declares only some of its types.

try:
    import valkey
except ImportError as error:
    raise ImportError(
        'forbear.clients.valkey needs valkey-py; install it with: pip install "forbear[valkey]"'
    ) from error

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from valkey import client as _sync
from valkey import cluster as _sync_cluster
from valkey.asyncio import client as _async
from valkey.asyncio import cluster as _async_cluster
from valkey.asyncio.connection import Connection as AsyncConnection
from valkey.asyncio.retry import Retry as AsyncRetry
from valkey.backoff import NoBackoff
from valkey.exceptions import ConnectionError, TimeoutError, ValkeyClusterException, ValkeyError, WatchError
from valkey.retry import Retry

from forbear.clients._redis.aio import AsyncClientMixin, AsyncClusterMixin, AsyncPipelineMixin, AsyncPubSubMixin
from forbear.clients._redis.client import ClientMixin, ClusterMixin, PipelineMixin, PubSubMixin
from forbear.clients._redis.cluster import Node, asend_pipeline, guard_node, send_pipeline
from forbear.exchange.redis.descriptions import promised
from forbear.exchange.redis.settings import ONCE, RedisSettings

__all__ = [
    "AsyncPipeline",
    "AsyncPubSub",
    "AsyncValkey",
    "AsyncValkeyCluster",
    "Pipeline",
    "PubSub",
    "Valkey",
    "ValkeyCluster",
    "promised",
]

_RAISED = (ValkeyError, ValkeyClusterException)


class Pipeline(PipelineMixin, _sync.Pipeline):
    """A pipeline of a `Valkey`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.
    Example: see `Valkey`.
    """

    _conflict = WatchError


class PubSub(PubSubMixin, _sync.PubSub):
    """Subscriptions of a `Valkey`. Messages are lost while it connects again. Example: see `Valkey`."""


# The library names its own class where the mixins return Self, and declares `command_info` of asyncio clients twice.


class Valkey(ClientMixin[Pipeline, PubSub], valkey.Valkey):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A `valkey.Valkey` that retries what may be repeated: `Valkey(host="localhost")` takes all the same arguments.

    `policy`, `safe` and the rules are those of `forbear.clients.redis.Redis`.

    >>> with Valkey(unix_socket_path=valkey, attempts=3) as client, client.pipeline() as pipe:
    ...     pipe.set("greeting", "hello").get("greeting").execute()
    [True, b'hello']
    """

    _raised = _RAISED
    _pipeline_class = Pipeline
    _pubsub_class = PubSub
    _switch_retries_off = staticmethod(lambda: {"retry": Retry(NoBackoff(), 0)})


class AsyncPipeline(AsyncPipelineMixin, _async.Pipeline):  # type: ignore[misc]
    """A pipeline of an `AsyncValkey`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.
    Example: see `Valkey`.
    """

    _conflict = WatchError


class AsyncPubSub(AsyncPubSubMixin, _async.PubSub):
    """Subscriptions of an `AsyncValkey`. Messages are lost while it connects again. Example: see `Valkey`."""


class AsyncValkey(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
    AsyncClientMixin[AsyncPipeline, AsyncPubSub], _async.Valkey
):
    """A `valkey.asyncio.Valkey` that retries as `Valkey` does: `AsyncValkey(host="localhost")` takes all its arguments.

    The policy's `attempt_timeout` (seconds) interrupts an attempt, whatever it is waiting for. Example: see `Valkey`.
    """

    _raised = _RAISED
    _pipeline_class = AsyncPipeline
    _pubsub_class = AsyncPubSub
    _switch_retries_off = staticmethod(lambda: {"retry": AsyncRetry(NoBackoff(), 0)})


class ClusterPipeline(_sync_cluster.ClusterPipeline):
    """A pipeline that sends commands to their nodes together, then failed ones that may be repeated each by itself."""

    settings: RedisSettings = ONCE

    def get_valkey_connection(self, node: _sync_cluster.ClusterNode) -> Any:
        find: Callable[..., Any] = super().get_valkey_connection
        return Node(find(node))

    def send_cluster_commands(
        self, stack: Sequence[Any], raise_on_error: bool = True, allow_redirections: bool = True
    ) -> list[Any]:
        send_all: Callable[..., Any] = super()._send_cluster_commands
        send_one: Callable[..., Any] = partial(_sync_cluster.ValkeyCluster.execute_command, self)
        return send_pipeline(self.settings, stack, send_all, send_one, raise_on_error=raise_on_error)


class ValkeyCluster(ClusterMixin, _sync_cluster.ValkeyCluster):
    """A `valkey.ValkeyCluster` that retries as `Valkey` does and takes all the same arguments.

    The library follows redirections and learns the nodes again. The table decides whether a command is sent again.
    A command for several nodes counts as executed once one of them has it. Example: see `Valkey`.
    """

    _lost = (ConnectionError, TimeoutError)
    _raised = _RAISED
    _switch_retries_off = staticmethod(lambda: {"cluster_error_retry_attempts": 0})

    def get_valkey_connection(self, node: _sync_cluster.ClusterNode) -> Any:
        find: Callable[..., Any] = super().get_valkey_connection
        return guard_node(find(node))

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:
        """Return a pipeline of which only commands that may be repeated or were not executed are sent again.

        The library has no transactions on clusters: a true `transaction` or `shard_hint` raises its own error.
        """
        if transaction or shard_hint:
            refuse: Callable[..., Any] = super().pipeline
            refuse(transaction, shard_hint)
        startup_nodes: Any = self.nodes_manager.startup_nodes
        make: Callable[..., ClusterPipeline] = ClusterPipeline
        pipe = make(
            nodes_manager=self.nodes_manager,
            commands_parser=self.commands_parser,
            startup_nodes=startup_nodes,
            result_callbacks=self.result_callbacks,
            cluster_response_callbacks=self.cluster_response_callbacks,
            cluster_error_retry_attempts=0,
            read_from_replicas=self.read_from_replicas,
            reinitialize_steps=self.reinitialize_steps,
            lock=self._lock,
        )
        pipe.settings = self.settings
        return pipe


class AsyncClusterPipeline(_async_cluster.ClusterPipeline):
    """A pipeline that sends commands to their nodes together, then failed ones that may be repeated each by itself."""

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        queue, self._command_stack = self._command_stack, []
        client: Any = self._client  # an AsyncValkeyCluster
        return await asend_pipeline(client, queue, self._execute, raise_on_error=raise_on_error)


class AsyncValkeyCluster(AsyncClusterMixin, _async_cluster.ValkeyCluster):  # type: ignore[misc]
    """A `valkey.asyncio.ValkeyCluster` that retries as `ValkeyCluster` does. Example: see `Valkey`."""

    _lost = (ConnectionError, TimeoutError)
    _raised = _RAISED
    _connection = AsyncConnection
    _switch_retries_off = staticmethod(
        lambda: {"cluster_error_retry_attempts": 0, "connection_error_retry_attempts": 0}
    )

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> AsyncClusterPipeline:
        if transaction or shard_hint:
            refuse: Callable[..., Any] = super().pipeline
            refuse(transaction, shard_hint)
        make: Any = AsyncClusterPipeline  # to type checkers it lacks a part of a protocol
        pipe: AsyncClusterPipeline = make(self)
        return pipe
