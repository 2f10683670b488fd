"""Retries inside the cluster clients of redis-py, sync and asyncio, and in their pipelines and transactions."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py declares only some of its types.

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import redis.asyncio.cluster
import redis.cluster
from redis.asyncio.connection import Connection as AsyncConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ConnectionError, TimeoutError, WatchError
from redis.retry import Retry

from forbear.clients._redis.aio import AsyncTransactionsMixin
from forbear.clients._redis.client import TransactionsMixin
from forbear.clients._redis.cluster import AsyncClusterMixin, ClusterMixin
from forbear.exchange.redis import cluster
from forbear.exchange.redis.pipelines import PipelineRequest, PipelineState, aunwatch, is_open, unwatch
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.exchange.redis.work import transaction
from forbear.services.redis.errors import BEGIN_AGAIN

P = TypeVar("P")


def once() -> dict[str, Any]:
    """Return the constructor's options by which a sync client of redis-py sends everything once."""
    return {"retry": Retry(NoBackoff(), 0)}


def async_once() -> dict[str, Any]:
    """Return the constructor's options by which an asyncio client of redis-py sends everything once."""
    return {"retry": AsyncRetry(NoBackoff(), 0)}


class RedisCluster(ClusterMixin, TransactionsMixin, redis.cluster.RedisCluster):
    """A `redis.RedisCluster` that retries as `Redis` does and takes all the same arguments.

    The library follows redirections and learns the nodes again. The table decides whether a command is sent again.
    A command for several nodes counts as executed once one of them has it.
    """

    _once = staticmethod(once)
    _lost = (ConnectionError, TimeoutError)

    def get_redis_connection(self, node: redis.cluster.ClusterNode) -> Any:
        """Return the client of a node."""
        return self._guarded(super().get_redis_connection(node))

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> redis.cluster.ClusterPipeline:
        """Return a pipeline of which only commands that may be repeated or were not executed are sent again.

        If `transaction` is true, it sends its commands between MULTI and EXEC on one node.
        """
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(self, settings: RedisSettings, transaction: Any, shard_hint: Any) -> redis.cluster.ClusterPipeline:
        self._refuse_later_retries()
        make: Callable[..., redis.cluster.ClusterPipeline] = super().pipeline
        return _with_strategy(make(transaction, shard_hint), settings, _Transaction if transaction else _Pipeline)


class AsyncRedisCluster(  # type: ignore[misc]
    AsyncClusterMixin, AsyncTransactionsMixin, redis.asyncio.cluster.RedisCluster
):
    """A `redis.asyncio.RedisCluster` that retries as `RedisCluster` does and takes all the same arguments."""

    _once = staticmethod(async_once)
    _lost = (ConnectionError, TimeoutError)
    _connection = AsyncConnection

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> redis.asyncio.cluster.ClusterPipeline:
        """Return a pipeline of which only commands that may be repeated or were not executed are sent again.

        If `transaction` is true, it sends its commands between MULTI and EXEC on one node.
        """
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(
        self, settings: RedisSettings, transaction: Any, shard_hint: Any
    ) -> redis.asyncio.cluster.ClusterPipeline:
        self._refuse_later_retries()
        pipe = super().pipeline(transaction, shard_hint)
        return _with_strategy(pipe, settings, _AsyncTransaction if transaction else _AsyncPipeline)


def _with_strategy(pipe: P, settings: RedisSettings, strategy: Callable[[Any], object]) -> P:
    """Give the pipeline a new state, and make `strategy(pipe)` the object by which it executes; return the pipeline."""
    changed: Any = pipe
    changed.state = PipelineState(settings, WatchError)
    changed._execution_strategy = strategy(pipe)
    return pipe


class _Strategy:
    """The way in which a pipeline of a cluster executes; it reads its state off the pipeline."""

    @property
    def _state(self) -> PipelineState:
        return cast(PipelineState, cast(Any, self)._pipe.state)


class _Pipeline(_Strategy, redis.cluster.PipelineStrategy):
    """Sends commands of a pipeline to their nodes together, then failed ones that may be repeated each by itself."""

    def send_cluster_commands(
        self, stack: Sequence[Any], raise_on_error: bool = True, allow_redirections: bool = True
    ) -> list[Any]:
        send_one: Callable[..., Any] = self._pipe.parent_execute_command
        return cluster.execute(
            self._state.settings, stack, self._send_cluster_commands, send_one, raise_on_error=raise_on_error
        )


class _AsyncPipeline(_Strategy, redis.asyncio.cluster.PipelineStrategy):
    """The asyncio form of `_Pipeline`: commands go to their nodes together, then failed ones each by itself."""

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        queue, self._command_queue = self._command_queue, []
        client = self._pipe.cluster_client
        return await cluster.aexecute(self._state.settings, queue, client, self._execute, raise_on_error=raise_on_error)


_BEFORE_EXEC = ("MULTI", "_")
"""The names under which the library reads the responses to MULTI and to queued commands."""


class _QueuedReader:
    """A node of a transaction, which reads the responses before that of EXEC by a function of a name of their own.

    `forbear.exchange.redis.phase` finds that name in tracebacks: nothing was executed then.
    """

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the next response, for asyncio an awaitable of it."""
        read = self.read_queued if command_name in _BEFORE_EXEC else self._node.parse_response
        return read(connection, command_name, **options)

    def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the next response, which comes before that of EXEC."""
        return self._node.parse_response(connection, command_name, **options)


class _AsyncQueuedReader(_QueuedReader):
    """The asyncio form of `_QueuedReader`."""

    async def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        return await self._node.parse_response(connection, command_name, **options)


def _leaves_unread(error: BaseException) -> bool:
    """Return whether responses are unread after an error; a refusal such as LOADING or MASTERDOWN is raised at once."""
    return isinstance(error, (ConnectionError, ClusterDownError)) or needs_new_connection(error)


class _TransactionBase(_Strategy):
    """Sends commands between MULTI and EXEC on one node, and before them WATCH and commands under it at once.

    `_attempt_at_once` and `_attempt` make one attempt by a function of the library; for asyncio they return awaitables.
    """

    _watching: bool
    _transaction_connection: Any
    _attempt_at_once: Callable[..., Any]
    _attempt: Callable[..., Any]

    def _has_lost_watch(self) -> bool:
        """Return whether the connection that held the WATCH was closed; the library would open it again without one."""
        connection = self._transaction_connection
        return self._watching and connection is not None and not is_open(connection)

    def _at_once(self, send: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> PipelineRequest:
        return self._state.at_once(args, partial(self._attempt_at_once, send, args, options), watched=True)

    def _queued(self, send: Callable[..., Any], stack: Sequence[Any], raise_on_error: bool) -> PipelineRequest:
        commands = [queued.args for queued in stack]
        describe = partial(transaction, commands, watched=self._watching, redirected=True)
        return self._state.queued(describe, partial(self._attempt, send, stack, raise_on_error), watched=self._watching)


class _Transaction(_TransactionBase, redis.cluster.TransactionStrategy):
    """A transaction of a sync client: the queued commands are sent as `_TransactionBase` says."""

    def _get_client_and_connection_for_transaction(self) -> tuple[Any, Any]:
        node, connection = super()._get_client_and_connection_for_transaction()
        return _QueuedReader(node), connection

    def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        return self._at_once(super()._immediate_execute_command, args, options).send()

    def _execute_transaction_with_retries(self, stack: Sequence[Any], raise_on_error: bool) -> Any:
        return self._queued(super()._execute_transaction_with_retries, stack, raise_on_error).send()

    def _attempt_at_once(self, send: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._check_watch()
        try:
            return send(*args, **options)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and needs_new_connection(error):
                connection.disconnect()
            if isinstance(error, Exception) and not is_open(connection):  # the WATCH is gone with it
                self.reset()
            raise

    def _attempt(self, send: Callable[..., Any], stack: Sequence[Any], raise_on_error: bool) -> Any:
        self._check_watch()
        try:
            return send(stack, raise_on_error)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and _leaves_unread(error):
                connection.disconnect()
            raise

    def _check_watch(self) -> None:
        if self._has_lost_watch():
            self.reset()
            raise WatchError(BEGIN_AGAIN)

    def reset(self) -> None:
        try:
            if self._watching:
                unwatch(self._transaction_connection)
        finally:
            self._watching = False
            reset: Callable[[], None] = super().reset
            reset()


class _AsyncTransaction(_TransactionBase, redis.asyncio.cluster.TransactionStrategy):
    """A transaction of an asyncio client: the queued commands are sent as `_TransactionBase` says."""

    def _get_client_and_connection_for_transaction(self) -> tuple[Any, Any]:
        node, connection = super()._get_client_and_connection_for_transaction()
        return _AsyncQueuedReader(node), connection

    async def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        return await self._at_once(super()._immediate_execute_command, args, options).asend()

    async def _execute_transaction_with_retries(self, stack: Sequence[Any], raise_on_error: bool) -> Any:
        return await self._queued(super()._execute_transaction_with_retries, stack, raise_on_error).asend()

    async def _attempt_at_once(
        self, send: Callable[..., Awaitable[Any]], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        await self._check_watch()
        try:
            return await send(*args, **options)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and needs_new_connection(error):
                await connection.disconnect()
            if isinstance(error, Exception) and not is_open(connection):
                await self.reset()
            raise

    async def _attempt(self, send: Callable[..., Awaitable[Any]], stack: Sequence[Any], raise_on_error: bool) -> Any:
        await self._check_watch()
        try:
            return await send(stack, raise_on_error)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and _leaves_unread(error):
                await connection.disconnect()
            raise

    async def _check_watch(self) -> None:
        if self._has_lost_watch():
            await self.reset()
            raise WatchError(BEGIN_AGAIN)

    async def reset(self) -> None:
        try:
            if self._watching:
                await aunwatch(self._transaction_connection)
        finally:
            self._watching = False
            reset: Callable[[], Awaitable[None]] = super().reset
            await reset()
