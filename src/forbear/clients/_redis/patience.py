"""Patience on clusters: a connection waits for the response to a blocking command as long as the server may block it.

The clients for one server do the same in `_send_command_parse_response`, which the cluster clients do not have. A
client that gave up earlier would lose the element that the server takes from a list for it.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from forbear.exchange.redis import blocking
from forbear.services.redis.words import Command

if TYPE_CHECKING:

    class LibraryConnection:
        def pack_command(self, *args: Any) -> Any: ...
        def pack_commands(self, commands: Any) -> Any: ...
        async def send_packed_command(self, command: Any, check_health: bool = True) -> None: ...
        async def read_response(self, *args: Any, **options: Any) -> Any: ...

else:
    LibraryConnection = object


class PatientNode:
    """The client of one node, of a sync library, while a blocking `command` is sent through it."""

    def __init__(self, node: Any, command: Command) -> None:
        self._node = node
        self._command = command

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to a command; the connection waits longer for that to a blocking one."""
        if command_name not in blocking.NAMES:  # ASKING, before the command itself
            return self._node.parse_response(connection, command_name, **options)
        with blocking.longer_timeout(connection, self._command):
            return self._node.parse_response(connection, command_name, **options)


class PatientConnection(LibraryConnection):
    """A connection of an asyncio library that waits longer for the response to a blocking command.

    It remembers the command that it packs until it is sent, because the library may connect in between, and the
    responses to its handshake come first.
    """

    _packed: tuple[Any, ...] = ()
    _sent: tuple[Any, ...] = ()

    def pack_command(self, *args: Any) -> Any:
        """Return a command in the form in which it is sent."""
        self._packed = args if args[0] in blocking.NAMES else ()
        return super().pack_command(*args)

    def pack_commands(self, commands: Any) -> Any:
        """Return the commands of a pipeline, for which nothing is added, in the form in which they are sent."""
        packed = super().pack_commands(commands)
        self._packed = ()
        return packed

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send what was packed, after connecting where that is necessary."""
        packed, self._packed = self._packed, ()
        await super().send_packed_command(command, check_health)
        self._sent = packed

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """Return the next response."""
        sent, self._sent = self._sent, ()
        if not sent:
            return await super().read_response(*args, **options)
        with blocking.async_longer_timeout(self, sent):
            return await super().read_response(*args, **options)


@cache
def patient(connection: type[Any]) -> type[Any]:
    """Return a subclass of an asyncio connection's class that is also a `PatientConnection`."""
    return type(f"Patient{connection.__name__}", (PatientConnection, connection), {})
