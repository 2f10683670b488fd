"""The sync clients of both libraries, their pipelines and subscriptions, as mixins."""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, cast

from forbear.clients._redis.base import ClientBase, LibraryClient, P, PipelineBase, PubSubBase, S, TransactionsBase
from forbear.exchange.redis import blocking, loops, pipelines
from forbear.exchange.redis.settings import ONCE, RedisSettings
from forbear.exchange.redis.transactions import transact
from forbear.exchange.redis.verdicts import is_demoted
from forbear.exchange.redis.work import single
from forbear.policy import Policy


class TransactionsMixin(TransactionsBase):
    """Gives sync clients a `transaction()` that retries."""

    def _transact(self, policy: Policy, func: Any, watches: Any, shard_hint: Any, options: dict[str, Any]) -> Any:
        with self._pipeline(ONCE, True, shard_hint) as pipe:
            return transact(self.settings, policy, pipe, func, watches, **options)


class CommandsMixin(LibraryClient):
    """Sends commands to one server. It is the last of the mixins, since each class that `super()` passes costs time."""

    settings: RedisSettings

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command as often as its policy allows and return the response."""
        return loops.send(self.settings, single, args, super().execute_command, args, options)

    def _send_command_parse_response(self, conn: Any, command_name: Any, *args: Any, **options: Any) -> Any:
        try:
            if command_name not in blocking.NAMES:
                return super()._send_command_parse_response(conn, command_name, *args, **options)
            with blocking.longer_timeout(conn, args):
                return super()._send_command_parse_response(conn, command_name, *args, **options)
        except Exception as error:
            if is_demoted(error):
                conn.disconnect()
            raise


class ClientMixin(ClientBase[P, S], TransactionsMixin, CommandsMixin, Generic[P, S]):
    """A sync client for one server."""

    _interrupts = False


class PipelineMixin(PipelineBase):
    """A sync pipeline for one server."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands as often as the policy allows and return the responses."""
        # To type checkers `transaction` is a method of clients.
        request = pipelines.queued(self, partial(super().execute, raise_on_error), atomic=cast(Any, self).transaction)
        return cast(list[Any], request.send())

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command at once: WATCH, or a command under WATCH."""
        return pipelines.at_once(self, partial(super().immediate_execute_command, *args, **options), args).send()

    def reset(self) -> Any:  # the name of a command, too
        """Drop the queue and the WATCH, and give the connection back, even if the server fails."""
        try:
            if self.watching:
                pipelines.unwatch(self.connection)
        finally:
            self.watching = False
            super().reset()

    def _sent(self, send: Callable[..., Any], connection: Any, *args: Any) -> Any:
        try:
            return send(connection, *args)
        except Exception as error:
            if is_demoted(error):
                connection.disconnect()
            raise


class PubSubMixin(PubSubBase):
    """Sync subscriptions to one server."""

    def execute_command(self, *args: Any) -> Any:
        """Subscribe or unsubscribe."""
        attempt = partial(super().execute_command, *args)
        return attempt() if self._resubscribing else loops.listen(self.settings, attempt)

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """Wait for a message."""
        return loops.listen(self.settings, partial(super().parse_response, block, timeout))

    def on_connect(self, connection: Any) -> None:
        """Subscribe again on a new connection, as a part of connecting."""
        self._resubscribing = True
        try:
            super().on_connect(connection)
        finally:
            self._resubscribing = False
