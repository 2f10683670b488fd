"""The asyncio client of valkey-py, its pipelines and subscriptions. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# valkey-py says the types of only some of what it does.

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Self, cast

from valkey.asyncio.client import Pipeline, PubSub, Valkey
from valkey.asyncio.retry import Retry
from valkey.backoff import NoBackoff
from valkey.exceptions import WatchError

from forbear.exchange.redis import adrive, blocking, pipelines, pubsub
from forbear.exchange.redis.pipelines import Trail
from forbear.exchange.redis.settings import ONCE, RECOMMENDED, Settings, refuse_pool, refuse_retries
from forbear.exchange.redis.transactions import atransact
from forbear.exchange.redis.verdicts import is_demoted
from forbear.exchange.redis.watch import Loop
from forbear.exchange.redis.work import single
from forbear.policy import Policy
from forbear.run.switch import is_off


class AsyncValkey(Valkey):
    """The same for asyncio: `AsyncValkey(host="localhost")` takes all that `valkey.asyncio.Valkey` takes.

    The policy's `attempt_timeout` (seconds) cuts an attempt short, whatever it is waiting for.
    """

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        if kwargs.get("connection_pool") is None:
            kwargs["retry"] = Retry(NoBackoff(), 0)
        super().__init__(*args, **kwargs)
        refuse_pool(self.connection_pool.connection_kwargs)

    @classmethod
    def from_url(cls, url: str, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> Self:
        """A client for a URL, as `valkey.asyncio.Valkey.from_url` makes it."""
        refuse_retries(kwargs)
        client: Self = super().from_url(url, *args, **kwargs)
        client.settings = Settings(policy)
        return client

    @classmethod
    def from_pool(cls, connection_pool: Any, *, policy: Policy | None = RECOMMENDED) -> Self:
        """A client that owns its pool, as `valkey.asyncio.Valkey.from_pool` makes it and so does Sentinel."""
        client = cast(Self, super().from_pool(connection_pool))
        client.settings = Settings(policy)
        return client

    def client(self) -> Self:
        """A client with one connection of its own from the same pool."""
        return type(self)(
            connection_pool=self.connection_pool, single_connection_client=True, policy=self.settings.policy
        )

    # No coroutine of its own around the one that does it all.
    def execute_command(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *args: Any, **options: Any
    ) -> Coroutine[Any, Any, Any]:
        """Send a command as often as its policy allows; await the reply."""
        send = super().execute_command
        return adrive.run(self.settings, single, args, send, args, options, patience=blocking.patience)

    async def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        send: Callable[..., Awaitable[Any]] = super()._send_command_parse_response
        try:
            if command_name not in blocking.NAMES:
                return await send(conn, command_name, *args, **options)
            with blocking.awaiting(conn, args):
                return await send(conn, command_name, *args, **options)
        except Exception as error:
            if is_demoted(error):
                await conn.disconnect()
            raise

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> "AsyncPipeline":
        """A pipeline whose commands are repeated together, if all of them may be."""
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(self, settings: Settings, transaction: bool, shard_hint: str | None) -> "AsyncPipeline":
        pipe = AsyncPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipe.settings = settings
        return pipe

    async def transaction(
        self,
        func: Callable[[Any], Any],
        *watches: Any,
        shard_hint: str | None = None,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
        max_tries: int | None = None,
    ) -> Any:
        """Run `func(pipeline)` and EXEC under WATCH, and the whole cycle again after a conflict.

        Cycles are limited and held back by the policy (`max_tries` replaces its attempts and `watch_delay`, in seconds,
        its backoff). If it is unknown whether EXEC was executed, the error comes out. Without a policy the library's
        own loop does it.
        """
        options: dict[str, Any] = {"value_from_callable": value_from_callable, "watch_delay": watch_delay}
        policy = self.settings.policy
        if policy is None or is_off():
            return await super().transaction(func, *watches, shard_hint=shard_hint, max_tries=max_tries, **options)
        if max_tries:
            policy = policy.with_attempts(max_tries)
        async with self._pipeline(ONCE, True, shard_hint) as pipe:
            return await atransact(self.settings, policy, pipe, func, watches, **options)

    def pubsub(self, **kwargs: Any) -> "AsyncPubSub":
        """Subscriptions that are taken up again when their connection breaks."""
        subscriptions = AsyncPubSub(self.connection_pool, **kwargs)
        subscriptions.settings = self.settings
        return subscriptions


class AsyncPipeline(Pipeline):
    """A pipeline of an `AsyncValkey`: a loss under WATCH that may hide an EXEC comes out as it is, no WatchError."""

    settings: Settings = ONCE
    trail: Trail | None = None
    loop: Loop | None = None
    conflict: type[Exception] = WatchError

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send what is queued as often as its policy allows and return the replies."""
        attempt = partial(super().execute, raise_on_error)
        return await pipelines.aexecute(self, attempt, atomic=self.is_transaction)

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once: WATCH, and what follows it."""
        return await pipelines.aat_once(self, partial(super().immediate_execute_command, *args, **options), args)

    async def reset(self) -> Any:  # the name of a command, too
        """Drop the queue and the WATCH, and give the connection back, even where the server fails."""
        connection: Any = self.connection
        try:
            if self.watching and connection is not None:
                await pipelines.aunwatch(connection)
        finally:
            self.watching = False
            reset: Callable[[], Awaitable[None]] = super().reset
            await reset()

    async def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: bool) -> list[Any]:
        send: Callable[..., Awaitable[list[Any]]] = super()._execute_transaction
        try:
            return await send(connection, commands, raise_on_error)
        except Exception as error:
            if is_demoted(error):
                await connection.disconnect()
            raise

    async def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: bool) -> list[Any]:
        send: Callable[..., Awaitable[list[Any]]] = super()._execute_pipeline
        try:
            return await send(connection, commands, raise_on_error)
        except Exception as error:
            if is_demoted(error):
                await connection.disconnect()
            raise


class AsyncPubSub(PubSub):
    """Subscriptions of an `AsyncValkey`; what is published while it connects anew is lost."""

    settings: Settings = ONCE
    _resubscribing = False

    async def execute_command(self, *args: Any) -> Any:
        """Subscribe or unsubscribe."""
        attempt = partial(super().execute_command, *args)
        return await attempt() if self._resubscribing else await pubsub.akeep(self.settings, attempt)

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Wait for a message."""
        return await pubsub.akeep(self.settings, partial(super().parse_response, block, timeout))

    async def on_connect(self, connection: Any) -> None:
        """Subscribe anew on a new connection, as a part of connecting."""
        self._resubscribing = True
        try:
            await super().on_connect(connection)
        finally:
            self._resubscribing = False
