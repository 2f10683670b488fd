"""Transactions on a cluster: the objects by which redis-py's pipelines send MULTI to EXEC to one node.

Generated from atransactions.py: change that file, then run `make unasync`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py declares only some of its types.

from collections.abc import Callable, Sequence
from typing import Any

import redis.cluster
from redis.exceptions import ClusterDownError, ConnectionError, WatchError

from forbear.exchange.redis import loops
from forbear.exchange.redis.pipelines import PipelineRequest, PipelineState, is_open
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.services.redis.errors import BEGIN_AGAIN

_MULTI, _QUEUED = "MULTI", "_"
"""The names under which the library reads the responses to MULTI and to queued commands."""


class QueuedReader:
    """A node of a transaction, which reads the responses before that of EXEC by functions of names of their own.

    `forbear.exchange.redis.verdicts` finds these names in tracebacks.
    """

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        known: Any = {_MULTI: self.read_multi, _QUEUED: self.read_queued}
        read = known.get(command_name, self._node.parse_response)
        return read(connection, command_name, **options)

    def read_multi(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to MULTI. If it is refused, the server executes at once what follows."""
        return self._node.parse_response(connection, command_name, **options)

    def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        return self._node.parse_response(connection, command_name, **options)


class Transaction(redis.cluster.TransactionStrategy):
    """A transaction, which sends commands between MULTI and EXEC on one node, and before them those under WATCH."""

    @property
    def _state(self) -> PipelineState:
        pipe: Any = self._pipe
        state: PipelineState = pipe.state
        return state

    def _get_client_and_connection_for_transaction(self) -> tuple[Any, Any]:
        node, connection = super()._get_client_and_connection_for_transaction()
        return QueuedReader(node), connection

    def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        request = PipelineRequest(self._state, watched=True, command=args)
        return loops.send_request(request, self._attempt_at_once, super()._immediate_execute_command, *args, **options)

    def _execute_transaction_with_retries(self, stack: Sequence[Any], raise_on_error: bool) -> Any:
        request = PipelineRequest(self._state, watched=self._watching, stack=stack, atomic=True, redirected=True)
        send = super()._execute_transaction_with_retries
        return loops.send_request(request, self._attempt, send, stack, raise_on_error)

    def _attempt_at_once(self, send: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self._check_watch()
        try:
            return send(*args, **options)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and needs_new_connection(error):
                connection.disconnect()
            if isinstance(error, Exception) and not is_open(connection):  # the WATCH is gone with it
                self.reset()
            raise

    def _attempt(self, send: Callable[..., Any], stack: Sequence[Any], raise_on_error: bool) -> Any:
        self._check_watch()
        try:
            return send(stack, raise_on_error)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and _leaves_unread(error):
                connection.disconnect()
            raise

    def _check_watch(self) -> None:
        """Raise WatchError if the connection with the WATCH was closed; the library would open it without one."""
        connection: Any = self._transaction_connection
        if self._watching and connection is not None and not is_open(connection):
            self.reset()
            raise WatchError(BEGIN_AGAIN)

    def reset(self) -> None:
        try:
            if self._watching:
                loops.unwatch(self._transaction_connection)
        finally:
            self._watching = False
            reset: Callable[[], None] = super().reset
            reset()


def _leaves_unread(error: BaseException) -> bool:
    """Return whether responses are unread after an error; a refusal such as LOADING or MASTERDOWN is raised at once."""
    return isinstance(error, (ConnectionError, ClusterDownError)) or needs_new_connection(error)
