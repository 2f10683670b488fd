"""Connections of clusters: they wait longer for blocking commands, and none is used again with an unread response.

The clients for one server do the same in `_send_command_parse_response`, which the cluster clients do not have. A
client that gave up a blocking command earlier would lose the element that the server takes from a list for it. A
response that is unread, because a signal handler raised an error meanwhile, would be read by the next command.
"""

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from forbear.exchange.redis import blocking
from forbear.exchange.redis.cluster import current_command
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.services.redis.words import Command

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
    command = current_command()
    return node if command is None else Node(node, command)


class Node:
    """The client of one node, of a sync library, while `command` is sent through it once; also its connection pool.

    `command` is None for the commands of a pipeline.
    """

    __slots__ = ("_command", "_earlier", "_is_read", "_node", "connection", "connection_pool")

    def __init__(self, node: Any, command: Command | None) -> None:
        self._node = node
        self._command = command
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
