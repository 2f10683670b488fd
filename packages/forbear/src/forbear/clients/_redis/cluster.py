"""The shared parts of cluster clients: their setup, and how the libraries send the commands of a pipeline."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from forbear.clients._redis.base import LibraryCluster, Setup
from forbear.clients._redis.blocking_timeouts import with_longer_timeout
from forbear.exchange.redis import aloops, loops
from forbear.exchange.redis.cluster import QueuedCommand
from forbear.exchange.redis.descriptions import describe_pipeline, describe_scattered_pipeline
from forbear.exchange.redis.settings import RECOMMENDED, RedisSettings, address_of, refuse_later_retries
from forbear.policy import Policy


class ClusterBase(Setup, LibraryCluster):
    """The base of clients for a cluster; `_lost` are the library's classes of errors for a connection that failed.

    `_connection` is an asyncio library's class of connections, None for a sync one.
    """

    _lost: ClassVar[tuple[type[Exception], ...]]
    _connection: ClassVar[type[Any] | None] = None

    def __init__(
        self, *args: Any, policy: Policy | None = RECOMMENDED, safe: str | Iterable[str] = (), **kwargs: Any
    ) -> None:
        self._set_up(policy, safe, kwargs)
        positional = dict(zip(("host", "port", "startup_nodes"), args, strict=False))
        self.settings = self.settings.copy_for(address_of({**positional, **kwargs}))
        super().__init__(*args, **kwargs)
        if self._connection is not None:
            own = cast(Any, self)
            waiting = with_longer_timeout(own.connection_kwargs.get("connection_class", self._connection))
            own.connection_kwargs["connection_class"] = waiting  # for the nodes that the client learns of
            for node in own.nodes_manager.startup_nodes.values():
                node.connection_class = waiting

    def _refuse_later_retries(self) -> None:
        """Raise ValueError if the library's own retries were turned on after the client was made."""
        refuse_later_retries(getattr(self, "retry", None))  # the sync client of valkey-py may have none
        attempts: object = getattr(self, "cluster_error_retry_attempts", 0)
        if attempts:
            raise ValueError(
                "`cluster_error_retry_attempts` must stay 0, because the client's own retries repeat any command; use "
                f"policy=, got {attempts!r}"
            )


def send_pipeline(
    settings: RedisSettings,
    stack: Sequence[Any],
    send_all: Callable[..., object],
    send_one: Callable[..., object],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Send the commands of a pipeline to their nodes as `send_scattered` says.

    `send_all(stack, ...)` is the library's own sending, without redirections; `send_one(*args, **options)` sends one
    command through the cluster.
    """
    options = [dict(queued.options) for queued in stack]  # an attempt takes the targets away

    def attempt() -> Any:
        for queued, own in zip(stack, options, strict=True):
            queued.options = dict(own)
        send_all(stack, raise_on_error=False, allow_redirections=False)

    def send_again(queued: QueuedCommand) -> object:
        return loops.send_to_nodes(settings, partial(send_one, *queued.args, **options[queued.position]), queued.args)

    return loops.send_scattered(settings, describe_pipeline, stack, attempt, send_again, raise_on_error=raise_on_error)


async def asend_pipeline(
    client: Any, queue: Sequence[Any], send_all: Callable[..., Awaitable[object]], *, raise_on_error: bool
) -> list[Any]:
    """The asyncio form of `send_pipeline` for the commands in `queue`; `client` is forbear's cluster client.

    Its `execute_command` sends the failed commands again, one by one, if they may be repeated. `send_all(client, stack,
    ...)` is the library's own sending.
    """
    stack: list[Any] = list(queue)

    async def attempt() -> Any:
        # New ones each time: a node that was not waited for may still write into the old ones.
        stack[:] = [type(queued)(queued.position, *queued.args, **queued.kwargs) for queued in queue]
        await client.initialize()
        await send_all(client, list(stack), raise_on_error=False, allow_redirections=False)

    async def send_again(queued: QueuedCommand) -> object:
        return await client.execute_command(*queued.args, **queue[queued.position].kwargs)

    return await aloops.send_scattered(
        client.settings, describe_scattered_pipeline, stack, attempt, send_again, raise_on_error=raise_on_error
    )
