"""The sync clients of both libraries, their pipelines and subscriptions, as mixins."""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, cast

from forbear.clients._redis.base import ClientBase, LibraryClient, P, PipelineBase, PubSubBase, S, TransactionsBase
from forbear.exchange.redis import blocking, loops, pipelines
from forbear.exchange.redis.settings import ONCE, RedisSettings, refuse_later_retries
from forbear.exchange.redis.transactions import transact
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.exchange.redis.work import single
from forbear.policy import Policy
from forbear.services.redis.errors import BEGIN_AGAIN


class TransactionsMixin(TransactionsBase):
    """Gives sync clients a `transaction()` that repeats the cycle from WATCH to EXEC after a conflict."""

    def _transact(self, policy: Policy, func: Any, watches: Any, shard_hint: Any, options: dict[str, Any]) -> Any:
        with self._pipeline(ONCE, True, shard_hint) as pipe:
            return transact(self.settings, policy, pipe, func, watches, **options)


class CommandsMixin(LibraryClient):
    """The part of a sync client that sends single commands to one server, with retries.

    It is the last of the mixins, since each class that `super()` passes costs time.
    """

    settings: RedisSettings

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send the command `args` as often as the policy allows and return the response."""
        return loops.send(self.settings, single, args, super().execute_command, args, options)

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
        # To type checkers `transaction` is a method of clients.
        request = pipelines.queued(self, partial(super().execute, raise_on_error), atomic=cast(Any, self).transaction)
        return cast(list[Any], request.send())

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once and return the response: WATCH, a command under WATCH, or the loading of scripts.

        Under WATCH it is sent once. Otherwise, as for the WATCH itself, the policy decides.
        """
        return pipelines.at_once(self, partial(super().immediate_execute_command, *args, **options), args).send()

    def reset(self) -> Any:  # the name of a command, too
        """Drop the queue, lift the WATCH, and give the connection back to the pool, even if UNWATCH fails."""
        try:
            if self.watching:
                pipelines.unwatch(self.connection)
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
        """Return the next response."""
        read = self.read_queued if self._unread else super().parse_response
        return read(connection, command_name, **options)

    def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the next response, which comes before that of EXEC."""
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
            self._unread = 0


class PubSubMixin(PubSubBase):
    """Sync subscriptions to one server, with retries."""

    def execute_command(self, *args: Any) -> Any:
        """Send a command such as SUBSCRIBE or UNSUBSCRIBE as often as the policy allows.

        While a new connection is subscribed again (`on_connect`), the command is sent once.
        """
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
