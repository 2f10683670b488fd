"""The sync clients of both libraries, their pipelines and subscriptions, as mixins; also those for clusters.

Generated from aio.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable
from typing import Any, Generic, cast

from forbear.clients._redis.base import ClientBase, LibraryClient, P, PipelineBase, PubSubBase, S, TransactionsBase
from forbear.clients._redis.cluster import ClusterBase
from forbear.exchange.redis import blocking, loops
from forbear.exchange.redis.cluster import Nodes, current_nodes
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.pipelines import PipelineRequest
from forbear.exchange.redis.settings import RedisSettings, refuse_later_retries
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.services.redis.errors import BEGIN_AGAIN


class TransactionsMixin(TransactionsBase):
    """Gives sync clients a `transaction()` that repeats the cycle from WATCH to EXEC after a conflict."""

    def _transact(self, settings: RedisSettings, func: Any, watches: Any, shard_hint: Any, **options: Any) -> Any:
        with self.pipeline(True, shard_hint) as pipe:
            return loops.transact(settings, pipe, func, watches, **options)


class ConnectionMixin(LibraryClient):
    """Waits longer for blocking commands, and closes a connection that another command must not use; the last mixin."""

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        try:
            refuse_later_retries(conn.retry)
            if command_name not in blocking.NAMES:
                return super()._send_command_parse_response(conn, command_name, *args, **options)
            conn.send_command(*args, **options)  # client-side caching sets the timeout anew here
            with blocking.longer_timeout(conn, args):
                return cast(Any, self).parse_response(conn, command_name, **options)
        except BaseException as error:
            if needs_new_connection(error):
                conn.disconnect()
            raise


class CommandsMixin(LibraryClient):
    """Sends single commands to one server, with retries."""

    settings: RedisSettings

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send the command `args` as often as the policy allows and return the response."""
        return loops.send(self.settings, describe_command, args, super().execute_command, args, options)


class ClientMixin(ClientBase[P, S], TransactionsMixin, CommandsMixin, ConnectionMixin, Generic[P, S]):
    """A sync client for one server."""

    _interrupts = False


class PipelineMixin(PipelineBase, ConnectionMixin):
    """A sync pipeline for one server."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands together as often as the policy allows, and return their responses.

        They are sent again if all may be repeated or none was executed, but under WATCH never. With `raise_on_error`
        the first error response is raised, otherwise errors stay among the responses.
        """
        atomic = cast(Any, self).transaction or self.explicit_transaction
        request = PipelineRequest(self.state, watched=self.watching, stack=self.command_stack, atomic=atomic)
        responses = loops.send_request(request, self._attempt, self._take_queue(), super().execute, raise_on_error)
        return cast(list[Any], responses)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once and return the response: WATCH, a command under WATCH, or the loading of scripts.

        Under WATCH it is sent once. Otherwise, as for the WATCH itself, the policy decides.
        """
        request = PipelineRequest(self.state, watched=self.watching, command=args)
        send = super().immediate_execute_command
        return loops.send_request(request, self._attempt, self._take_queue(), send, *args, **options)

    def reset(self) -> Any:  # the name of a command, too
        """Drop the queue, lift the WATCH, and give the connection back to the pool, even if UNWATCH fails."""
        try:
            if self.watching:
                loops.unwatch(self.connection)
        finally:
            self.watching = False
            super().reset()

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        if self._has_lost_watch(conn):
            self.reset()
            raise self._conflict(BEGIN_AGAIN)
        return super()._send_command_parse_response(conn, command_name, *args, **options)

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        read = self.read_multi if self._opens else self.read_queued if self._unread else super().parse_response
        return read(connection, command_name, **options)

    def read_multi(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to MULTI. If it is refused, the server executes at once what follows."""
        self._opens = False
        return super().parse_response(connection, command_name, **options)

    def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        self._unread -= 1
        return super().parse_response(connection, command_name, **options)

    def _sent(self, send: Callable[..., Any], connection: Any, *args: Any) -> Any:
        if self._has_lost_watch(connection):
            raise self._conflict(BEGIN_AGAIN)
        try:
            return send(connection, *args)
        except BaseException as error:
            if needs_new_connection(error):
                connection.disconnect()
            raise
        finally:
            self._opens, self._unread = False, 0


class PubSubMixin(PubSubBase):
    """Sync subscriptions to one server, with retries."""

    def execute_command(self, *args: Any) -> Any:
        """Send a command such as SUBSCRIBE as the policy allows; once, while a new connection is subscribed again."""
        send = super().execute_command
        return send(*args) if self._resubscribing else loops.listen(self.settings, send, *args)

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Return the next message or response as the library parses it; after a failure, retry as the policy allows.

        With `block` it waits for one, whatever the `timeout`. Otherwise it waits `timeout` seconds and returns None if
        nothing arrives.
        """
        return loops.listen(self.settings, super().parse_response, block, timeout)

    def on_connect(self, connection: Any) -> None:
        """Subscribe again to the same channels, as a part of opening `connection`; these commands are not retried."""
        self._resubscribing = True
        try:
            super().on_connect(connection)
        finally:
            self._resubscribing = False


class ClusterMixin(ClusterBase):
    """A sync client for a cluster."""

    _interrupts = False

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command to the nodes it is meant for, as often as the policy allows, and return the response.

        After each lost connection another node becomes the default node, because the old one may be down.
        """
        nodes = Nodes(args)
        attempt = self._attempt, (nodes, super().execute_command, *args), kwargs
        return loops.send(self.settings, nodes.describe, args, *attempt)

    def _attempt(self, nodes: Nodes, send: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._refuse_later_retries()
        try:
            with nodes:
                return send(*args, **kwargs)
        except self._lost:
            self.replace_default_node()  # this very node may be down
            raise

    def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        if (nodes := current_nodes()) is not None:
            nodes.append(target_node)
        return super()._execute_command(target_node, *args, **kwargs)
