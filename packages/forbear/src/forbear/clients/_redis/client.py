"""The sync clients of both libraries, their pipelines and subscriptions, as mixins; also those for clusters.

Generated from aio.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, cast

from forbear.clients._redis.base import ClientBase, LibraryClient, P, PipelineBase, PubSubBase, S, TransactionsBase
from forbear.clients._redis.cluster import ClusterBase
from forbear.exchange.redis import blocking, cluster, loops
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.pipelines import Queue
from forbear.exchange.redis.settings import ONCE, RedisSettings, refuse_later_retries
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.policy import Policy
from forbear.services.redis.errors import BEGIN_AGAIN


class TransactionsMixin(TransactionsBase):
    """Gives sync clients a `transaction()` that repeats the cycle from WATCH to EXEC after a conflict."""

    def _transact(self, policy: Policy, func: Any, watches: Any, shard_hint: Any, options: dict[str, Any]) -> Any:
        with self._pipeline(ONCE, True, shard_hint) as pipe:
            return loops.transact(self.settings, policy, pipe, func, watches, **options)


class CommandsMixin(LibraryClient):
    """Sends single commands to one server, with retries; the last mixin, since each one below costs time."""

    settings: RedisSettings

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send the command `args` as often as the policy allows and return the response."""
        return loops.send(self.settings, describe_command, args, super().execute_command, args, options)

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


class ClientMixin(ClientBase[P, S], TransactionsMixin, CommandsMixin, Generic[P, S]):
    """A sync client for one server."""

    _interrupts = False


class PipelineMixin(PipelineBase):
    """A sync pipeline for one server."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands together as often as the policy allows, and return their responses.

        They are sent again if all may be repeated or none was executed, but under WATCH never. With `raise_on_error`
        the first error response is raised, otherwise errors stay among the responses.
        """
        atomic = cast(Any, self).transaction or self.explicit_transaction
        request = self.state.request_for_queue(self.command_stack, atomic=atomic, watched=self.watching)
        responses = loops.send_request(request, Queue(self).send, super().execute, raise_on_error)
        return cast(list[Any], responses)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once and return the response: WATCH, a command under WATCH, or the loading of scripts.

        Under WATCH it is sent once. Otherwise, as for the WATCH itself, the policy decides.
        """
        request = self.state.request_at_once(args, watched=self.watching)
        send = super().immediate_execute_command
        return loops.send_request(request, Queue(self).send, send, *args, **options)

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
        try:
            return super()._send_command_parse_response(conn, command_name, *args, **options)
        except BaseException as error:
            if needs_new_connection(error):
                conn.disconnect()
            raise

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        read = self.read_multi if self._opens else self.read_queued if self._unread else super().parse_response
        return read(connection, command_name, **options)

    def read_multi(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to MULTI. If it is refused, the server executes at once what follows."""
        self._opens = False
        return super().parse_response(connection, command_name, **options)

    def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to the next queued command."""
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
        attempt = partial(super().execute_command, *args)
        return attempt() if self._resubscribing else loops.listen(self.settings, attempt)

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Return the next message or response as the library parses it; after a failure, retry as the policy allows.

        With `block` it waits for one, whatever the `timeout`. Otherwise it waits `timeout` seconds and returns None if
        nothing arrives.
        """
        return loops.listen(self.settings, partial(super().parse_response, block, timeout))

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
        send = super().execute_command

        def attempt() -> Any:
            self._refuse_later_retries()
            try:
                return send(*args, **kwargs)
            except self._lost:
                self.replace_default_node()  # this very node may be down
                raise

        return loops.send_to_nodes(self.settings, attempt, args)

    def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.record_node(target_node)
        return super()._execute_command(target_node, *args, **kwargs)
