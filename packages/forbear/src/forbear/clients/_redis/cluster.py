"""The shared parts of cluster clients: setup, pipelines, and connections that are ready for every command.

A connection waits longer for a blocking command, and none is used again with an unread response. The clients for one
server do the same in `_send_command_parse_response`, which the cluster clients do not have. A client that gave up a
blocking command earlier would lose the element that the server takes from a list for it. A response that is unread,
because a signal handler raised an error meanwhile, would be read by the next command.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from forbear.clients._redis.base import LibraryCluster, Setup
from forbear.exchange.redis import aloops, blocking, loops
from forbear.exchange.redis.cluster import Nodes, QueuedCommand, current_nodes
from forbear.exchange.redis.descriptions import describe_together
from forbear.exchange.redis.settings import RECOMMENDED, RedisSettings, address_of, refuse_later_retries
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.policy import Policy

if TYPE_CHECKING:

    class LibraryConnection:
        def pack_command(self, *args: Any) -> Any: ...
        def pack_commands(self, commands: Any) -> Any: ...
        async def send_packed_command(self, command: Any, check_health: bool = True) -> None: ...
        async def read_response(self, *args: Any, **options: Any) -> Any: ...
        async def disconnect(self, nowait: bool = False) -> None: ...

else:
    LibraryConnection = object


def guard_node(node: Any) -> Any:
    """Return the client of a node, for the command of the current attempt; outside of one, `node` itself."""
    return node if current_nodes() is None else Node(node)


class Node:
    """The client of one node, of a sync library, while something is sent through it once; also its connection pool."""

    __slots__ = ("_command", "_earlier", "_is_read", "_node", "connection", "connection_pool")

    def __init__(self, node: Any) -> None:
        nodes = current_nodes()
        self._node = node
        self._command = None if nodes is None else nodes.command  # None for the commands of a pipeline
        self._is_read = False
        self._earlier = sys.exception()  # which the caller handles
        self.connection = node.connection
        self.connection_pool = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def get_connection(self, *args: Any, **options: Any) -> Any:
        return self._node.connection_pool.get_connection(*args, **options)

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to a command; the connection waits longer for that to a blocking one."""
        try:
            if self._command is not None and command_name in blocking.NAMES:
                with blocking.longer_timeout(connection, self._command):
                    response = self._node.parse_response(connection, command_name, **options)
            else:
                response = self._node.parse_response(connection, command_name, **options)
        except BaseException as error:
            self._is_read = self._command is not None and not needs_new_connection(error)
            raise
        self._is_read = self._command is not None and command_name != "ASKING"  # which comes before the command itself
        return response

    def release(self, connection: Any) -> None:
        """Give the connection back to the node's pool, closed if an error came before its response was read."""
        if not self._is_read and sys.exception() is not self._earlier:
            connection.disconnect()
        self._node.connection_pool.release(connection)


class WaitingConnection(LibraryConnection):
    """A connection of an asyncio library that waits longer for the response to a blocking command.

    It remembers the command that it packs until it is sent, because the library may connect in between, and the
    responses to its handshake come first. It counts the responses to commands that are `_unread`; with one left, it
    connects anew before the next command.
    """

    _packed: tuple[Any, ...] = ()
    _sent: tuple[Any, ...] = ()
    _count = 0
    _unread = 0
    _opens = False  # the commands of a handshake are not counted

    def pack_command(self, *args: Any) -> Any:
        self._packed = args if args[0] in blocking.NAMES else ()
        self._count = 1
        return super().pack_command(*args)

    def pack_commands(self, commands: Any) -> Any:
        """Return the commands of a pipeline, for which nothing is added, in the form in which they are sent."""
        commands = list(commands)
        packed = super().pack_commands(commands)
        self._packed, self._count = (), len(commands)
        return packed

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if self._opens:
            return await super().send_packed_command(command, check_health)
        packed, self._packed = self._packed, ()
        count, self._count = self._count, 0
        if self._unread:
            await self.disconnect(nowait=True)
        self._opens = True
        try:
            await super().send_packed_command(command, check_health)
            self._sent, self._unread = packed, count
        except BaseException:
            await self.disconnect(nowait=True)
            raise
        finally:
            self._opens = False
        return None

    async def read_response(self, *args: Any, **options: Any) -> Any:
        sent, self._sent = self._sent, ()
        try:
            if not sent:
                response = await super().read_response(*args, **options)
            else:
                with blocking.async_longer_timeout(self, sent):
                    response = await super().read_response(*args, **options)
        except BaseException as error:
            if not needs_new_connection(error):
                self._has_read()
            raise
        self._has_read()
        return response

    def _has_read(self) -> None:
        if self._unread and not self._opens:
            self._unread -= 1


@cache
def with_longer_timeout(connection: type[Any]) -> type[Any]:
    """Return a subclass of an asyncio connection's class that is also a `WaitingConnection`."""
    return type(f"Waiting{connection.__name__}", (WaitingConnection, connection), {})


class ClusterBase(Setup, LibraryCluster):
    """The base of clients for a cluster; `_lost` are the library's classes of errors for a connection that failed.

    `_connection` is an asyncio library's class of connections, None for a sync one.
    """

    _lost: ClassVar[tuple[type[Exception], ...]]
    _connection: ClassVar[type[Any] | None] = None

    def __init__(
        self, *args: Any, policy: Policy | None = RECOMMENDED, safe: str | Iterable[str] = (), **kwargs: Any
    ) -> None:
        self._set_up(policy, safe, kwargs)
        positional = dict(zip(("host", "port", "startup_nodes"), args, strict=False))
        self.settings = self.settings.copy_for(address_of({**positional, **kwargs}))
        super().__init__(*args, **kwargs)
        if self._connection is not None:
            own = cast(Any, self)
            waiting = with_longer_timeout(own.connection_kwargs.get("connection_class", self._connection))
            own.connection_kwargs["connection_class"] = waiting  # for the nodes that the client learns of
            for node in own.nodes_manager.startup_nodes.values():
                node.connection_class = waiting

    def _refuse_later_retries(self) -> None:
        """Raise ValueError if the library's own retries were turned on after the client was made."""
        refuse_later_retries(getattr(self, "retry", None))  # the sync client of valkey-py may have none
        attempts: object = getattr(self, "cluster_error_retry_attempts", 0)
        if attempts:
            raise ValueError(
                "`cluster_error_retry_attempts` must stay 0, because the client's own retries repeat any command; use "
                f"policy=, got {attempts!r}"
            )


def send_pipeline(
    settings: RedisSettings,
    stack: Sequence[Any],
    send_all: Callable[..., object],
    send_one: Callable[..., object],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Send the commands of a pipeline to their nodes as `send_scattered` says.

    `send_all(stack, ...)` is the library's own sending, without redirections; `send_one(*args, **options)` sends one
    command through the cluster.
    """
    options = [dict(queued.options) for queued in stack]  # an attempt takes the targets away

    def attempt() -> Any:
        for queued, own in zip(stack, options, strict=True):
            queued.options = dict(own)
        send_all(stack, raise_on_error=False, allow_redirections=False)

    def send_again(queued: QueuedCommand) -> object:
        nodes = Nodes(queued.args)
        arguments = (send_one, *queued.args), options[queued.position]
        return loops.send(settings, nodes.describe, queued.args, nodes.send, *arguments)

    return loops.send_scattered(settings, describe_together, stack, attempt, send_again, raise_on_error=raise_on_error)


async def asend_pipeline(
    client: Any, queue: Sequence[Any], send_all: Callable[..., Awaitable[object]], *, raise_on_error: bool
) -> list[Any]:
    """The asyncio form of `send_pipeline`; forbear's cluster `client` sends the failed commands of `queue` again."""
    stack: list[Any] = list(queue)
    describe = partial(describe_together, scattered=True)

    async def attempt() -> Any:
        # New ones each time: a node that was not waited for may still write into the old ones.
        stack[:] = [type(queued)(queued.position, *queued.args, **queued.kwargs) for queued in queue]
        await client.initialize()
        await send_all(client, list(stack), raise_on_error=False, allow_redirections=False)

    async def send_again(queued: QueuedCommand) -> object:
        return await client.execute_command(*queued.args, **queue[queued.position].kwargs)

    return await aloops.send_scattered(
        client.settings, describe, stack, attempt, send_again, raise_on_error=raise_on_error
    )
