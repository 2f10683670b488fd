"""The sync client of valkey-py, its pipelines and subscriptions. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# valkey-py says the types of only some of what it does.

from collections.abc import Callable
from functools import partial
from typing import Any, Self, cast

import valkey
from valkey.backoff import NoBackoff
from valkey.client import Pipeline as _Pipeline
from valkey.client import PubSub as _PubSub
from valkey.exceptions import WatchError
from valkey.retry import Retry

from forbear.exchange.redis import blocking, drive, pipelines, pubsub
from forbear.exchange.redis.pipelines import Trail
from forbear.exchange.redis.settings import ONCE, RECOMMENDED, Settings, refuse_pool, refuse_retries, shorten
from forbear.exchange.redis.transactions import transact
from forbear.exchange.redis.verdicts import is_demoted
from forbear.exchange.redis.watch import Loop
from forbear.exchange.redis.work import single
from forbear.policy import Policy
from forbear.run.switch import is_off


class Valkey(valkey.Valkey):
    """Retries what may be repeated: `Valkey(host="localhost")` takes all that `valkey.Valkey` takes.

    Each command is looked up in the table of `forbear.services.redis`: one that was certainly not executed is sent
    again, one whose reply was lost only if executing it twice does no harm. `policy` says how long to hold back and
    when to stop, by default `forbear.services.redis.policy`; None sends everything once. A policy of one's own brings
    its limits and its `on`; the table stays. Its `attempt_timeout` (seconds) becomes the timeouts of the sockets.

    The library's own retries are off, and asking for them is a TypeError: they repeat any command. A `connection_pool`
    has to be without them, too (ValueError).
    """

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        if kwargs.get("connection_pool") is None:
            shorten(kwargs, self.settings.limit)
            kwargs["retry"] = Retry(NoBackoff(), 0)
        super().__init__(*args, **kwargs)
        refuse_pool(self.connection_pool.connection_kwargs, self.settings.limit)

    @classmethod
    def from_url(cls, url: str, *, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> Self:
        """A client for a URL, as `valkey.Valkey.from_url` makes it."""
        refuse_retries(kwargs)
        shorten(kwargs, Settings(policy).limit)
        return cast(Self, super().from_url(url, **kwargs))._under(policy)

    @classmethod
    def from_pool(cls, connection_pool: Any, *, policy: Policy | None = RECOMMENDED) -> Self:
        """A client that owns its pool, as `valkey.Valkey.from_pool` makes it and so does Sentinel."""
        return cast(Self, super().from_pool(connection_pool))._under(policy)

    def _under(self, policy: Policy | None) -> Self:
        self.settings = Settings(policy)
        refuse_pool(self.connection_pool.connection_kwargs, self.settings.limit)
        return self

    def client(self) -> Self:
        """A client with one connection of its own from the same pool."""
        return type(self)(
            connection_pool=self.connection_pool, single_connection_client=True, policy=self.settings.policy
        )

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command as often as its policy allows and return the reply."""
        return drive.run(self.settings, single, args, super().execute_command, args, options)

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        send: Callable[..., Any] = super()._send_command_parse_response
        try:
            if command_name not in blocking.NAMES:
                return send(conn, command_name, *args, **options)
            with blocking.waiting(conn, args):
                return send(conn, command_name, *args, **options)
        except Exception as error:
            if is_demoted(error):
                conn.disconnect()
            raise

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> "Pipeline":
        """A pipeline whose commands are repeated together, if all of them may be."""
        return self._pipeline(self.settings, transaction, shard_hint)

    def _pipeline(self, settings: Settings, transaction: bool, shard_hint: Any) -> "Pipeline":
        make: Callable[..., Pipeline] = Pipeline
        pipe = make(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipe.settings = settings
        return pipe

    def transaction(
        self,
        func: Callable[["Pipeline"], Any],
        *watches: Any,
        shard_hint: Any = None,
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
            loop: Callable[..., Any] = super().transaction
            return loop(func, *watches, shard_hint=shard_hint, max_tries=max_tries, **options)
        if max_tries:
            policy = policy.with_attempts(max_tries)
        with self._pipeline(ONCE, True, shard_hint) as pipe:
            return transact(self.settings, policy, pipe, func, watches, **options)

    def pubsub(self, **kwargs: Any) -> "PubSub":
        """Subscriptions that are taken up again when their connection breaks."""
        subscriptions = PubSub(self.connection_pool, **kwargs)
        subscriptions.settings = self.settings
        return subscriptions


class Pipeline(_Pipeline):
    """A pipeline of a `Valkey`: a loss under WATCH that may hide an EXEC comes out as it is, not as WatchError."""

    settings: Settings = ONCE
    trail: Trail | None = None
    loop: Loop | None = None
    conflict: type[Exception] = WatchError

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send what is queued as often as its policy allows and return the replies."""
        atomic = cast(bool, self.transaction)  # the name of a method of clients, too
        return pipelines.execute(self, partial(super().execute, raise_on_error), atomic=atomic)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once: WATCH, and what follows it."""
        return pipelines.at_once(self, partial(super().immediate_execute_command, *args, **options), args)

    def reset(self) -> Any:  # the name of a command, too
        """Drop the queue and the WATCH, and give the connection back, even where the server fails."""
        connection: Any = self.connection
        if self.watching and connection is not None:
            pipelines.unwatch(connection)
        self.watching = False
        super().reset()

    def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: bool) -> list[Any]:
        try:
            return super()._execute_transaction(connection, commands, raise_on_error)
        except Exception as error:
            if is_demoted(error):
                connection.disconnect()
            raise

    def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: bool) -> list[Any]:
        send: Callable[..., list[Any]] = super()._execute_pipeline
        try:
            return send(connection, commands, raise_on_error)
        except Exception as error:
            if is_demoted(error):
                connection.disconnect()
            raise


class PubSub(_PubSub):
    """Subscriptions of a `Valkey`; what is published while it connects anew is lost."""

    settings: Settings = ONCE
    _resubscribing = False

    def execute_command(self, *args: Any) -> Any:
        """Subscribe or unsubscribe."""
        attempt = partial(super().execute_command, *args)
        return attempt() if self._resubscribing else pubsub.keep(self.settings, attempt)

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Wait for a message."""
        receive: Callable[..., Any] = super().parse_response
        return pubsub.keep(self.settings, partial(receive, block, timeout))

    def on_connect(self, connection: Any) -> None:
        """Subscribe anew on a new connection, as a part of connecting."""
        self._resubscribing = True
        try:
            super().on_connect(connection)
        finally:
            self._resubscribing = False
