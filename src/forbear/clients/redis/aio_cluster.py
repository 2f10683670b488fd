"""The asyncio cluster client of redis-py and its pipelines. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py says the types of only some of what it does.

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from redis.asyncio.cluster import (
    ClusterPipeline,
    PipelineCommand,
    PipelineStrategy,
    RedisCluster,
    TransactionStrategy,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ConnectionError, TimeoutError, WatchError

from forbear.exchange.redis import adrive, cluster, watch
from forbear.exchange.redis.pipelines import Trail, aunwatch, is_open, noting
from forbear.exchange.redis.settings import ONCE, RECOMMENDED, Settings, refuse_retries
from forbear.exchange.redis.transactions import atransact
from forbear.exchange.redis.work import several, single, transaction
from forbear.policy import Policy
from forbear.run.switch import is_off


class AsyncRedisCluster(RedisCluster):
    """The same for a cluster and asyncio; it takes all that `redis.asyncio.RedisCluster` takes."""

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        kwargs["retry"] = Retry(NoBackoff(), 0)
        super().__init__(*args, **kwargs)

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command as often as its policy allows and return the reply."""
        return await cluster.arun(self.settings, partial(self._attempt, super().execute_command, args, kwargs), args)

    async def _attempt(self, send: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return await send(*args, **kwargs)
        except (ConnectionError, TimeoutError):
            self.replace_default_node()  # it may be what is down
            raise

    async def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        return await super()._execute_command(target_node, *args, **kwargs)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:
        """A pipeline of which only what may be repeated is sent again."""
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(self, settings: Settings, transaction: Any, shard_hint: Any) -> ClusterPipeline:
        pipe: Any = super().pipeline(transaction, shard_hint)
        pipe.trail = None
        pipe._execution_strategy = _Transaction(pipe, settings) if transaction else _Pipeline(pipe, settings)
        return cast(ClusterPipeline, pipe)

    async def transaction(
        self,
        func: Any,
        *watches: Any,
        shard_hint: Any = None,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run `func(pipeline)` and EXEC under WATCH, and the whole cycle again after a conflict; see `AsyncRedis`."""
        options: dict[str, Any] = {"value_from_callable": value_from_callable, "watch_delay": watch_delay, **kwargs}
        policy = self.settings.policy
        if policy is None or is_off():
            return await super().transaction(func, *watches, shard_hint=shard_hint, **options)
        async with self._pipeline(ONCE, True, shard_hint) as pipe:
            return await atransact(self.settings, policy, pipe, func, watches, **options)


class _Pipeline(PipelineStrategy):
    """Commands that go to their nodes together, and by themselves where that fails."""

    def __init__(self, pipe: ClusterPipeline, settings: Settings) -> None:
        super().__init__(pipe)
        self._settings = settings

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        queue = self._command_queue
        if not queue:
            return []
        client: Any = self._pipe.cluster_client
        stack: list[PipelineCommand] = []

        async def attempt() -> None:
            # New ones each time: a node that was not waited for may still write into the old ones.
            stack[:] = [PipelineCommand(queued.position, *queued.args, **queued.kwargs) for queued in queue]
            await client.initialize()
            await self._execute(client, list(stack), raise_on_error=False, allow_redirections=False)

        async def send(queued: Any) -> Any:
            # The client is one of ours, and goes by the table itself.
            return await client.execute_command(*queued.args, **queue[queued.position].kwargs)

        try:
            commands = [queued.args for queued in queue]
            await adrive.run(self._settings, several, commands, attempt)
            await cluster.amend(self._settings, stack, send)
            if raise_on_error:
                cluster.raise_first(stack)
            return [queued.result for queued in stack]
        finally:
            self._command_queue = []


class _Transaction(TransactionStrategy):
    """Commands between MULTI and EXEC on one node, and what goes before them under WATCH."""

    def __init__(self, pipe: ClusterPipeline, settings: Settings) -> None:
        super().__init__(pipe)
        self._settings = settings
        self._own_loop = watch.Loop(WatchError)

    async def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        trail: Trail | None = cast(Any, self._pipe).trail
        if trail is not None:
            trail.at_once.append(args)
        attempt = partial(self._attempt_at_once, super()._immediate_execute_command, args, options)
        with noting(trail):
            return await watch.arun(self._settings, self._loop(), partial(single, args, at_once=True), attempt)

    async def _attempt_at_once(
        self, send: Callable[..., Awaitable[Any]], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        try:
            return await send(*args, **options)
        except Exception:
            connection: Any = self._transaction_connection
            if connection is None or not is_open(connection):  # the WATCH is gone with it
                await self.reset()
            raise

    async def _execute_transaction_with_retries(self, stack: list[PipelineCommand], raise_on_error: bool) -> Any:
        commands = [queued.args for queued in stack]
        describe = partial(transaction, watched=self._watching, redirected=True)
        trail: Trail | None = cast(Any, self._pipe).trail
        if trail is not None:
            trail.queued = partial(describe, commands)
        sent = (super()._execute_transaction_with_retries, stack, raise_on_error)
        with noting(trail):
            if self._watching:
                attempt = partial(self._attempt, *sent)
                return await watch.arun(self._settings, self._loop(), partial(describe, commands), attempt, ends=True)
            return await adrive.run(self._settings, describe, commands, self._attempt, sent)

    def _loop(self) -> watch.Loop | None:
        return self._own_loop if cast(Any, self._pipe).trail is None else None

    async def _attempt(self, send: Callable[..., Awaitable[Any]], stack: list[PipelineCommand], checked: bool) -> Any:
        try:
            return await send(stack, checked)
        except (ConnectionError, ClusterDownError):
            connection: Any = self._transaction_connection
            if connection is not None:  # a refusal such as LOADING or MASTERDOWN leaves other responses unread
                await connection.disconnect()
            raise

    async def reset(self) -> None:
        connection: Any = self._transaction_connection
        try:
            if self._watching and connection is not None:
                await aunwatch(connection)
        finally:
            self._watching = False
            reset: Callable[[], Awaitable[None]] = super().reset
            await reset()
