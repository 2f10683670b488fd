"""The shared parts of sync and asyncio clients: their setup, and how they make pipelines and subscriptions.

Each mixin stands before a class of redis-py or valkey-py among the bases of a client, so `super()` is that class at run
time. The `Library` classes declare its methods for type checkers; at run time they are `object`.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from forbear.core.check import refuse_unknown
from forbear.exchange.chosen import KEYWORDS_OF_CLIENTS
from forbear.exchange.redis.pipelines import PipelineState, is_open
from forbear.exchange.redis.settings import (
    ONCE,
    RECOMMENDED,
    RedisSettings,
    address_of,
    check_pool,
    limit_sockets,
    refuse_later_retries,
    refuse_retries,
    with_keywords,
)
from forbear.policy import Policy
from forbear.run.switch import is_off

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.run.derive import ClientOptions

    class Library:
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    class LibraryClient(Library):
        @classmethod
        def from_url(cls, url: str, *args: Any, **kwargs: Any) -> Any: ...
        @classmethod
        def from_pool(cls, connection_pool: Any) -> Any: ...
        def execute_command(self, *args: Any, **options: Any) -> Any: ...
        def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any: ...

    class LibraryPipeline(Library):
        command_stack: Any
        connection: Any
        explicit_transaction: bool
        scripts: set[Any]
        watching: bool

        def execute(self, raise_on_error: bool = True) -> Any: ...
        def immediate_execute_command(self, *args: Any, **options: Any) -> Any: ...
        def reset(self) -> Any: ...
        def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: bool) -> Any: ...
        def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: bool) -> Any: ...
        def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any: ...
        def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any: ...

    class LibraryPubSub(Library):
        def execute_command(self, *args: Any) -> Any: ...
        def parse_response(self, block: bool = True, timeout: float = 0) -> Any: ...
        def on_connect(self, connection: Any) -> Any: ...
        def _execute(self, conn: Any, command: Any, *args: Any, **kwargs: Any) -> Any: ...

    class LibraryCluster(Library):
        def execute_command(self, *args: Any, **kwargs: Any) -> Any: ...
        def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any: ...
        def replace_default_node(self, target_node: Any = None) -> None: ...

    class LibraryTransactions:
        def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any: ...
        def transaction(self, func: Any, *watches: Any, **options: Any) -> Any: ...

else:
    LibraryClient = LibraryPipeline = LibraryPubSub = LibraryCluster = LibraryTransactions = object


_EMPTY = "EMPTY_RESPONSE"
"""The option of commands that the libraries do not send, in transactions."""


class PipelineBase(LibraryPipeline):
    """The base of pipelines for one server, sync and asyncio; `settings` is the retry policy of the client.

    `_conflict` is the library's WatchError. `_sent` calls a function of the library that sends. After an error that
    needs a new connection, `_sent` disconnects. For asyncio it returns an awaitable.

    `_unread` is the number of responses of a transaction that are still to be read before that of EXEC, and `_opens` is
    true until that of MULTI was read. `read_multi` and `read_queued` read them; their names in a traceback show whether
    anything may have been executed (`forbear.exchange.redis.verdicts`).
    """

    _conflict: ClassVar[type[Exception]]
    _sent: Callable[..., Any]
    _unread = 0
    _opens = False

    def __init__(self, *args: Any, settings: RedisSettings = ONCE, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state = PipelineState(settings, self._conflict)

    def _take_queue(self) -> tuple[Any, ...]:
        """Return what an attempt removes, so that the next one can have it."""
        return self.command_stack, self.scripts, self.explicit_transaction

    def _attempt(self, queue: tuple[Any, ...], send: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Put the queued commands back and call the library's `send`; return its result, for asyncio an awaitable."""
        self.command_stack, self.scripts, self.explicit_transaction = queue
        return send(*args, **options)

    def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: bool) -> Any:
        self._opens, self._unread = True, sum(_EMPTY not in options for _, options in commands)
        return self._sent(super()._execute_transaction, connection, commands, raise_on_error)

    def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: bool) -> Any:
        return self._sent(super()._execute_pipeline, connection, commands, raise_on_error)

    def _has_lost_watch(self, connection: Any) -> bool:
        """Return whether the connection with the WATCH was closed; ValueError if it repeats commands by itself."""
        refuse_later_retries(connection.retry)
        return self.watching and not is_open(connection)


class PubSubBase(LibraryPubSub):
    """The base of subscriptions to one server; `_resubscribing` is true while a new connection subscribes again."""

    settings: RedisSettings = ONCE
    _resubscribing = False

    def _execute(self, conn: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_later_retries(conn.retry)
        return super()._execute(conn, command, *args, **kwargs)


class TransactionsBase(LibraryTransactions):
    """The method `transaction()` of all clients but Valkey's cluster clients; `_transact` runs it under a policy."""

    settings: RedisSettings
    _transact: Callable[..., Any]

    def transaction(
        self,
        func: Callable[[Any], Any],
        *watches: Any,
        shard_hint: Any = None,
        value_from_callable: bool = False,
        watch_delay: float | None = None,
        **options: Any,
    ) -> Any:
        """WATCH the keys `watches`, run `func(pipeline)` and EXEC, and run the whole cycle again after a conflict.

        Another failure runs it again only if what was sent was not executed or may be repeated; an EXEC under WATCH may
        not. The policy limits the cycles and sets the waits between them. `watch_delay` (seconds) replaces its backoff
        after a conflict, and `max_tries` of valkey-py its attempts. Returns the responses of EXEC, with
        `value_from_callable` the value of `func`. Without a policy, or with retries off, the library's own loop runs
        the cycles.
        """
        own = {"value_from_callable": value_from_callable, "watch_delay": watch_delay}
        settings = self.settings
        if settings.policy is None or is_off():
            return super().transaction(func, *watches, shard_hint=shard_hint, **own, **options)
        if max_tries := options.pop("max_tries", None):
            settings = RedisSettings(settings.policy.with_attempts(max_tries), settings.safe)
        return self._transact(settings, func, watches, shard_hint, **own, **options)


P = TypeVar("P", bound=PipelineBase)
S = TypeVar("S", bound=PubSubBase)


class Setup:
    """The settings of a client for one server or a cluster.

    `_switch_retries_off` returns the options of the constructor by which the library sends everything once.
    `_interrupts` is true if the client interrupts an attempt at the attempt timeout; otherwise its sockets time out by
    then. `_raised` are the bases of the library's errors.
    """

    settings: RedisSettings
    _interrupts: ClassVar[bool]
    _raised: ClassVar[tuple[type[Exception], ...]]
    _switch_retries_off: Callable[[], dict[str, Any]]

    def _set_up(self, policy: Policy | None, safe: str | Iterable[str], options: dict[str, Any]) -> None:
        """Adopt the policy (None: no retries), and switch off the library's own retries in the constructor's `options`.

        The keywords of `forbear.retry` among the `options` change the policy, and are removed. The user vouches for the
        commands in `safe`. The socket timeouts are cut to the attempt timeout, unless the client interrupts attempts.
        With a `connection_pool` among them, `options` stay as they are. Raises
        TypeError for options of the library's own retries, and what `RedisSettings` raises.
        """
        self.settings = RedisSettings(with_keywords(policy, options), safe, self._raised)
        refuse_retries(options)
        if options.get("connection_pool") is None:
            limit_sockets(options, self._socket_limit(self.settings))
            options |= self._switch_retries_off()

    def __repr__(self) -> str:
        own, shown = super().__repr__(), self.settings.show()
        return f"<{own.removeprefix('<').removesuffix('>')}, {shown}>" if shown else own

    def set_retry(self, retry: Any) -> None:
        """Pass `retry` to the library; raises ValueError if it repeats anything, since it would repeat any command."""
        refuse_later_retries(retry)
        cast(Any, super()).set_retry(retry)

    @classmethod
    def _socket_limit(cls, settings: RedisSettings) -> float | None:
        return None if cls._interrupts else settings.limit


class ClientBase(Setup, Generic[P, S], LibraryClient):  # noqa: PYI059 - at run time the last is `object`
    """A client for one server, which makes pipelines of class P and subscriptions of class S."""

    _pipeline_class: type[P]
    _pubsub_class: type[S]

    def __init__(
        self, *args: Any, policy: Policy | None = RECOMMENDED, safe: str | Iterable[str] = (), **kwargs: Any
    ) -> None:
        self._set_up(policy, safe, kwargs)
        super().__init__(*args, **kwargs)
        self._adopt_pool()

    @classmethod
    def from_url(
        cls,
        url: str,
        *args: Any,
        policy: Policy | None = RECOMMENDED,
        safe: str | Iterable[str] = (),
        **kwargs: Any,
    ) -> Self:
        """Return a client for `url` under `policy` (None: no retries); other arguments are those of the library.

        `safe` names commands that may be executed twice, as in the constructor.

        Raises TypeError for arguments that turn on the library's own retries, and ValueError for a URL that does.
        ValueError also if the URL lets the sockets of a sync client wait longer than the attempt timeout.
        """
        policy = with_keywords(policy, kwargs)
        refuse_retries(kwargs)
        limit_sockets(kwargs, cls._socket_limit(RedisSettings(policy, safe, cls._raised)))
        return cast(Self, super().from_url(url, *args, **kwargs))._adopt(policy, safe)

    @classmethod
    def from_pool(
        cls,
        connection_pool: Any,
        *,
        policy: Policy | None = RECOMMENDED,
        safe: str | Iterable[str] = (),
        **options: "Unpack[ClientOptions]",
    ) -> Self:
        """Return a client under `policy` that owns its pool and closes it, as the library's own `from_pool` makes it.

        `safe` names commands that may be executed twice, as in the constructor. Raises ValueError if the pool retries
        by itself, or if its sockets of a sync client wait longer than the attempt timeout.
        """
        kwargs = dict[str, Any](options)
        policy = with_keywords(policy, kwargs)
        if kwargs:
            refuse_unknown("from_pool", kwargs, ("policy", "safe", *KEYWORDS_OF_CLIENTS))
        return cast(Self, super().from_pool(connection_pool))._adopt(policy, safe)

    def _adopt(self, policy: Policy | None, safe: str | Iterable[str]) -> Self:
        self.settings = RedisSettings(policy, safe, self._raised)
        self._adopt_pool()
        return self

    def _adopt_pool(self) -> None:
        pool = cast(Any, self).connection_pool
        check_pool(pool.connection_kwargs, self._socket_limit(self.settings))
        service: object = getattr(pool, "service_name", None)  # of a pool behind a Sentinel
        named = {} if service is None else {"service_name": service}
        self.settings = self.settings.copy_for(address_of({**pool.connection_kwargs, **named}))

    def client(self) -> Self:
        """Return another client with the same policy, and with one connection of its own from the same pool."""
        return type(self)(
            connection_pool=cast(Any, self).connection_pool,
            single_connection_client=True,
            policy=self.settings.policy,
            safe=self.settings.safe,
        )

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> P:
        """Return a pipeline, which sends its commands between MULTI and EXEC if `transaction` is true (the default).

        After a failure all its commands are sent again together, if all of them may be repeated or none was executed.
        Under WATCH they are sent once.
        """
        own = cast(Any, self)
        return self._pipeline_class(
            own.connection_pool, own.response_callbacks, transaction, shard_hint, settings=self.settings
        )

    def pubsub(self, **kwargs: Any) -> S:
        """Return an object for subscriptions, which subscribes again on a new connection."""
        dispatcher = getattr(self, "_event_dispatcher", None)  # valkey-py has none
        if dispatcher is not None:
            kwargs.setdefault("event_dispatcher", dispatcher)
        subscriptions = self._pubsub_class(cast(Any, self).connection_pool, **kwargs)
        subscriptions.settings = self.settings
        return subscriptions
