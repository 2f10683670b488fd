"""The asyncio cluster client of valkey-py and its pipelines. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# valkey-py says the types of only some of what it does.

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from valkey.asyncio.cluster import ClusterPipeline, PipelineCommand, ValkeyCluster
from valkey.exceptions import ConnectionError, TimeoutError

from forbear.exchange.redis import adrive, cluster
from forbear.exchange.redis.settings import RECOMMENDED, Settings, refuse_retries
from forbear.exchange.redis.work import several
from forbear.policy import Policy


class AsyncValkeyCluster(ValkeyCluster):
    """The same for a cluster and asyncio; it takes all that `valkey.asyncio.ValkeyCluster` takes."""

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        kwargs |= {"cluster_error_retry_attempts": 0, "connection_error_retry_attempts": 0}
        super().__init__(*args, **kwargs)

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command as often as its policy allows and return the reply."""
        return await cluster.arun(self.settings, partial(self._attempt, super().execute_command, args, kwargs), args)

    async def _attempt(self, send: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return await send(*args, **kwargs)
        except (ConnectionError, TimeoutError):
            self.replace_default_node()  # it may be what is down
            raise

    async def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        return await super()._execute_command(target_node, *args, **kwargs)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:
        """A pipeline of which only what may be repeated is sent again; the library has no transactions on clusters."""
        if transaction or shard_hint:
            return super().pipeline(transaction, shard_hint)  # which refuses
        make: Any = AsyncClusterPipeline  # which lacks a part of a protocol, for all that type checkers see
        pipe: ClusterPipeline = make(self)
        return pipe


class AsyncClusterPipeline(ClusterPipeline):
    """Commands that go to their nodes together, and by themselves where that fails."""

    def __init__(self, client: AsyncValkeyCluster) -> None:
        super().__init__(client)
        self._settings = client.settings

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        """Send what is queued as often as its policy allows and return the replies."""
        queue, self._command_stack = self._command_stack, []
        client: Any = self._client
        stack: list[PipelineCommand] = []

        async def attempt() -> None:
            # New ones each time: a node that was not waited for may still write into the old ones.
            stack[:] = [PipelineCommand(queued.position, *queued.args, **queued.kwargs) for queued in queue]
            await client.initialize()
            await self._execute(client, list(stack), raise_on_error=False, allow_redirections=False)

        async def send(queued: Any) -> Any:
            # The client is one of ours, and goes by the table itself.
            return await client.execute_command(*queued.args, **queue[queued.position].kwargs)

        if not queue:
            return []
        commands = [queued.args for queued in queue]
        await adrive.run(self._settings, several, commands, attempt)
        await cluster.amend(self._settings, stack, send)
        if raise_on_error:
            cluster.raise_first(stack)
        return [queued.result for queued in stack]
