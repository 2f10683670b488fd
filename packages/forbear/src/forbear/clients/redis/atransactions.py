"""Transactions on a cluster, asyncio: the objects by which redis-py's pipelines send MULTI to EXEC to one node.

`transactions.py` has the sync ones. It is generated from this file: change this one, then run `make unasync`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# redis-py declares only some of its types.

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import redis.asyncio.cluster
from redis.exceptions import ClusterDownError, ConnectionError, WatchError

from forbear.exchange.redis import aloops
from forbear.exchange.redis.pipelines import PipelineRequest, PipelineState, is_open
from forbear.exchange.redis.verdicts import needs_new_connection
from forbear.services.redis.errors import BEGIN_AGAIN

_MULTI, _QUEUED = "MULTI", "_"
"""The names under which the library reads the responses to MULTI and to queued commands."""


class AsyncQueuedReader:
    """A node of a transaction, which reads the responses before that of EXEC by functions of names of their own.

    `forbear.exchange.redis.verdicts` finds these names in tracebacks.
    """

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    async def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        known: Any = {_MULTI: self.read_multi, _QUEUED: self.read_queued}
        read = known.get(command_name, self._node.parse_response)
        return await read(connection, command_name, **options)

    async def read_multi(self, connection: Any, command_name: Any, **options: Any) -> Any:
        """Return the response to MULTI. If it is refused, the server executes at once what follows."""
        return await self._node.parse_response(connection, command_name, **options)

    async def read_queued(self, connection: Any, command_name: Any, **options: Any) -> Any:
        return await self._node.parse_response(connection, command_name, **options)


class AsyncTransaction(redis.asyncio.cluster.TransactionStrategy):
    """A transaction, which sends commands between MULTI and EXEC on one node, and before them those under WATCH."""

    @property
    def _state(self) -> PipelineState:
        pipe: Any = self._pipe
        state: PipelineState = pipe.state
        return state

    def _get_client_and_connection_for_transaction(self) -> tuple[Any, Any]:
        node, connection = super()._get_client_and_connection_for_transaction()
        return AsyncQueuedReader(node), connection

    async def _immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        request = PipelineRequest(self._state, watched=True, command=args)
        return await aloops.send_request(
            request, self._attempt_at_once, super()._immediate_execute_command, *args, **options
        )

    async def _execute_transaction_with_retries(self, stack: Sequence[Any], raise_on_error: bool) -> Any:
        request = PipelineRequest(self._state, watched=self._watching, stack=stack, atomic=True, redirected=True)
        send = super()._execute_transaction_with_retries
        return await aloops.send_request(request, self._attempt, send, stack, raise_on_error)

    async def _attempt_at_once(self, send: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        await self._check_watch()
        try:
            return await send(*args, **options)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and needs_new_connection(error):
                await connection.disconnect()
            if isinstance(error, Exception) and not is_open(connection):  # the WATCH is gone with it
                await self.reset()
            raise

    async def _attempt(self, send: Callable[..., Awaitable[Any]], stack: Sequence[Any], raise_on_error: bool) -> Any:
        await self._check_watch()
        try:
            return await send(stack, raise_on_error)
        except BaseException as error:
            connection: Any = self._transaction_connection
            if connection is not None and _leaves_unread(error):
                await connection.disconnect()
            raise

    async def _check_watch(self) -> None:
        """Raise WatchError if the connection with the WATCH was closed; the library would open it without one."""
        connection: Any = self._transaction_connection
        if self._watching and connection is not None and not is_open(connection):
            await self.reset()
            raise WatchError(BEGIN_AGAIN)

    async def reset(self) -> None:
        try:
            if self._watching:
                await aloops.unwatch(self._transaction_connection)
        finally:
            self._watching = False
            reset: Callable[[], Awaitable[None]] = super().reset
            await reset()


def _leaves_unread(error: BaseException) -> bool:
    """Return whether responses are unread after an error; a refusal such as LOADING or MASTERDOWN is raised at once."""
    return isinstance(error, (ConnectionError, ClusterDownError)) or needs_new_connection(error)
