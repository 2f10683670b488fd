"""The sync cluster client of redis-py and its pipelines. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py says the types of only some of what it does.

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterPipeline, PipelineCommand, PipelineStrategy, TransactionStrategy
from redis.exceptions import ClusterDownError, ConnectionError, TimeoutError, WatchError
from redis.retry import Retry

from forbear.exchange.redis import cluster, drive, watch
from forbear.exchange.redis.pipelines import Trail, is_open, noting, unwatch
from forbear.exchange.redis.settings import ONCE, RECOMMENDED, Settings, refuse_retries, shorten
from forbear.exchange.redis.transactions import transact
from forbear.exchange.redis.work import pipeline, single, transaction
from forbear.policy import Policy
from forbear.run.switch import is_off


class RedisCluster(redis.RedisCluster):
    """The same for a cluster: `RedisCluster(host="localhost", port=7000)` takes all that `redis.RedisCluster` takes.

    The library follows redirections and learns the nodes anew; whether a command is sent again is for the table to
    say. A command for several nodes counts as executed once one of them has it.
    """

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        shorten(kwargs, self.settings.limit)
        kwargs["retry"] = Retry(NoBackoff(), 0)
        super().__init__(*args, **kwargs)

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command as often as its policy allows and return the reply."""
        return cluster.run(self.settings, partial(self._attempt, super().execute_command, args, kwargs), args)

    def _attempt(self, send: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return send(*args, **kwargs)
        except (ConnectionError, TimeoutError):
            self.replace_default_node()  # it may be what is down
            raise

    def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        send: Callable[..., Any] = super()._execute_command
        return send(target_node, *args, **kwargs)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:
        """A pipeline of which only what may be repeated is sent again."""
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(self, settings: Settings, transaction: Any, shard_hint: Any) -> ClusterPipeline:
        make: Callable[..., Any] = super().pipeline
        pipe = make(transaction, shard_hint)
        pipe.trail = None
        pipe._execution_strategy = _Transaction(pipe, settings) if transaction else _Pipeline(pipe, settings)
        return cast(ClusterPipeline, pipe)

    def transaction(
        self,
        func: Callable[[Any], Any],
        *watches: Any,
        shard_hint: Any = None,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
    ) -> Any:
        """Run `func(pipeline)` and EXEC under WATCH, and the whole cycle again after a conflict; see `Redis`."""
        options: dict[str, Any] = {"value_from_callable": value_from_callable, "watch_delay": watch_delay}
        policy = self.settings.policy
        if policy is None or is_off():
            loop: Callable[..., Any] = super().transaction
            return loop(func, *watches, shard_hint=shard_hint, **options)
        with self._pipeline(ONCE, True, shard_hint) as pipe:
            return transact(self.settings, policy, pipe, func, watches, **options)


class _Pipeline(PipelineStrategy):
    """Commands that go to their nodes together, and by themselves where that fails."""

    def __init__(self, pipe: ClusterPipeline, settings: Settings) -> None:
        super().__init__(pipe)
        self._settings = settings

    def send_cluster_commands(
        self, stack: Sequence[Any], raise_on_error: bool = True, allow_redirections: bool = True
    ) -> list[Any]:
        options = [dict(queued.options) for queued in stack]  # an attempt takes the targets away
        send_all: Callable[..., Any] = self._send_cluster_commands

        def attempt() -> None:
            for queued, given in zip(stack, options, strict=True):
                queued.options = dict(given)
            send_all(stack, raise_on_error=False, allow_redirections=False)

        def send(queued: Any) -> Any:
            send_one = partial(self._pipe.parent_execute_command, *queued.args, **options[queued.position])
            return cluster.run(self._settings, send_one, queued.args)

        commands = [queued.args for queued in stack]
        drive.run(self._settings, pipeline, commands, attempt)
        cluster.mend(self._settings, stack, send)
        if raise_on_error:
            cluster.raise_first(stack)
        return [queued.result for queued in stack]


class _Transaction(TransactionStrategy):
    """Commands between MULTI and EXEC on one node, and what goes before them under WATCH."""

    def __init__(self, pipe: ClusterPipeline, settings: Settings) -> None:
        super().__init__(pipe)
        self._settings = settings
        self._own_loop = watch.Loop(WatchError)

    def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        trail: Trail | None = cast(Any, self._pipe).trail
        if trail is not None:
            trail.at_once.append(args)
        attempt = partial(self._attempt_at_once, super()._immediate_execute_command, args, options)
        with noting(trail):
            return watch.run(self._settings, self._loop(), partial(single, args, at_once=True), attempt)

    def _attempt_at_once(self, send: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            return send(*args, **options)
        except Exception:
            connection: Any = self._transaction_connection
            if connection is None or not is_open(connection):  # the WATCH is gone with it
                self.reset()
            raise

    def _execute_transaction_with_retries(self, stack: list[PipelineCommand], raise_on_error: bool) -> Any:
        commands = [queued.args for queued in stack]
        describe = partial(transaction, watched=self._watching, redirected=True)
        trail: Trail | None = cast(Any, self._pipe).trail
        if trail is not None:
            trail.queued = partial(describe, commands)
        sent = (super()._execute_transaction_with_retries, stack, raise_on_error)
        with noting(trail):
            if self._watching:
                attempt = partial(self._attempt, *sent)
                return watch.run(self._settings, self._loop(), partial(describe, commands), attempt, ends=True)
            return drive.run(self._settings, describe, commands, self._attempt, sent)

    def _loop(self) -> watch.Loop | None:
        return self._own_loop if cast(Any, self._pipe).trail is None else None

    def _attempt(self, send: Callable[..., Any], stack: list[PipelineCommand], raise_on_error: bool) -> Any:
        try:
            return send(stack, raise_on_error)
        except (ConnectionError, ClusterDownError):
            connection: Any = self._transaction_connection
            if connection is not None:  # a refusal such as LOADING or MASTERDOWN leaves other responses unread
                connection.disconnect()
            raise

    def reset(self) -> None:
        connection: Any = self._transaction_connection
        if self._watching and connection is not None:
            unwatch(connection)
        self._watching = False
        reset: Callable[[], None] = super().reset
        reset()
