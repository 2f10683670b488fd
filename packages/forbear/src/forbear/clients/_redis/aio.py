"""The asyncio clients of both libraries, their pipelines and subscriptions, as mixins; also those for clusters.

`client.py` has the sync ones. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, cast

from forbear.clients._redis.base import ClientBase, LibraryClient, P, PipelineBase, PubSubBase, S, TransactionsBase
from forbear.clients._redis.cluster import ClusterBase
from forbear.exchange.redis import aloops, blocking
from forbear.exchange.redis.cluster import Nodes, current_nodes
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.pipelines import PipelineRequest
from forbear.exchange.redis.settings import RedisSettings, refuse_later_retries
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.services.redis.errors import BEGIN_AGAIN


class AsyncTransactionsMixin(TransactionsBase):
    """Gives asyncio clients an async `transaction()` that repeats the cycle from WATCH to EXEC after a conflict."""

    async def _transact(self, settings: RedisSettings, func: Any, watches: Any, shard_hint: Any, **options: Any) -> Any:
        async with self.pipeline(True, shard_hint) as pipe:
            return await aloops.transact(settings, pipe, func, watches, **options)


class AsyncConnectionMixin(LibraryClient):
    """Waits longer for blocking commands, and closes a connection that another command must not use; the last mixin."""

    async def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        try:
            refuse_later_retries(conn.retry)
            if command_name not in blocking.NAMES:
                return await super()._send_command_parse_response(conn, command_name, *args, **options)
            with blocking.async_longer_timeout(conn, args):
                return await super()._send_command_parse_response(conn, command_name, *args, **options)
        except BaseException as error:
            if needs_new_connection(error):
                await conn.disconnect()
            raise


class AsyncCommandsMixin(LibraryClient):
    """Sends single commands to one server, with retries."""

    settings: RedisSettings

    # A plain function: another coroutine around that of the loop would cost time.
    def execute_command(self, *args: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that sends the command `args` as often as the policy allows, and returns the response.

        An attempt may take the policy's attempt timeout plus the time for which a blocking command may block.
        """
        return aloops.send(self.settings, describe_command, args, super().execute_command, args, options)


class AsyncClientMixin(
    ClientBase[P, S], AsyncTransactionsMixin, AsyncCommandsMixin, AsyncConnectionMixin, Generic[P, S]
):
    """An asyncio client for one server."""

    _interrupts = True


class AsyncPipelineMixin(PipelineBase, AsyncConnectionMixin):
    """An asyncio pipeline for one server."""

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands together as often as the policy allows, and return their responses.

        They are sent again if all may be repeated or none was executed, but under WATCH never. With `raise_on_error`
        the first error response is raised, otherwise errors stay among the responses.
        """
        atomic = cast(Any, self).is_transaction or self.explicit_transaction
        request = PipelineRequest(self.state, watched=self.watching, stack=self.command_stack, atomic=atomic)
        responses = await aloops.send_request(
            request, self._attempt, self._take_queue(), super().execute, raise_on_error
        )
        return cast(list[Any], responses)

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once and return the response: WATCH, a command under WATCH, or the loading of scripts.

        Under WATCH it is sent once. Otherwise, as for the WATCH itself, the policy decides.
        """
        request = PipelineRequest(self.state, watched=self.watching, command=args)
        send = super().immediate_execute_command
        return await aloops.send_request(request, self._attempt, self._take_queue(), send, *args, **options)

    async def reset(self) -> Any:  # the name of a command, too
        """Drop the queue, lift the WATCH, and give the connection back to the pool, even if UNWATCH fails."""
        try:
            if self.watching:
                await aloops.unwatch(self.connection)
        finally:
            self.watching = False
            await super().reset()

    async def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        if self._has_lost_watch(conn):
            await self.reset()
            raise self._conflict(BEGIN_AGAIN)
        return await super()._send_command_parse_response(conn, command_name, *args, **options)

    async def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        read = self.read_multi if self._opens else self.read_queued if self._unread else super().parse_response
        return await read(connection, command_name, **options)

    async def read_multi(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to MULTI. If it is refused, the server executes at once what follows."""
        self._opens = False
        return await super().parse_response(connection, command_name, **options)

    async def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        self._unread -= 1
        return await super().parse_response(connection, command_name, **options)

    async def _sent(self, send: Callable[..., Awaitable[Any]], connection: Any, *args: Any) -> Any:
        if self._has_lost_watch(connection):
            raise self._conflict(BEGIN_AGAIN)
        try:
            return await send(connection, *args)
        except BaseException as error:
            if needs_new_connection(error):
                await connection.disconnect()
            raise
        finally:
            self._opens, self._unread = False, 0


class AsyncPubSubMixin(PubSubBase):
    """Asyncio subscriptions to one server, with retries."""

    async def execute_command(self, *args: Any) -> Any:
        """Send a command such as SUBSCRIBE as the policy allows; once, while a new connection is subscribed again."""
        send = super().execute_command
        return await send(*args) if self._resubscribing else await aloops.listen(self.settings, send, *args)

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Return the next message or response as the library parses it; after a failure, retry as the policy allows.

        With `block` it waits for one, whatever the `timeout`. Otherwise it waits `timeout` seconds and returns None if
        nothing arrives.
        """
        return await aloops.listen(self.settings, super().parse_response, block, timeout)

    async def on_connect(self, connection: Any) -> None:
        """Subscribe again to the same channels, as a part of opening `connection`; these commands are not retried."""
        self._resubscribing = True
        try:
            await super().on_connect(connection)
        finally:
            self._resubscribing = False


class AsyncClusterMixin(ClusterBase):
    """An asyncio client for a cluster."""

    _interrupts = True

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command to the nodes it is meant for, as often as the policy allows, and return the response.

        After each lost connection another node becomes the default node, because the old one may be down.
        """
        nodes = Nodes(args)
        attempt = self._attempt, (nodes, super().execute_command, *args), kwargs
        return await aloops.send(self.settings, nodes.describe, args, *attempt)

    async def _attempt(self, nodes: Nodes, send: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        self._refuse_later_retries()
        try:
            with nodes:
                return await send(*args, **kwargs)
        except self._lost:
            self.replace_default_node()  # this very node may be down
            raise

    async def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        if (nodes := current_nodes()) is not None:
            nodes.append(target_node)
        return await super()._execute_command(target_node, *args, **kwargs)
