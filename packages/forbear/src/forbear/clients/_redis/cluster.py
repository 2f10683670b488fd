"""The cluster clients of both libraries, sync and asyncio, as mixins."""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from forbear.clients._redis.base import LibraryCluster, Setup
from forbear.clients._redis.patience import Node, patient
from forbear.exchange.redis import cluster
from forbear.exchange.redis.settings import RECOMMENDED, address_of, refuse_later_retries
from forbear.policy import Policy


class ClusterBase(Setup, LibraryCluster):
    """The base of clients for a cluster; `_lost` are the library's classes of errors for a connection that failed."""

    _lost: ClassVar[tuple[type[Exception], ...]]

    def __init__(
        self, *args: Any, policy: Policy | None = RECOMMENDED, safe: str | Iterable[str] = (), **kwargs: Any
    ) -> None:
        self._set_up(policy, safe, kwargs)
        positional = dict(zip(("host", "port", "startup_nodes"), args, strict=False))
        self.settings = self.settings.at(address_of({**positional, **kwargs}))
        super().__init__(*args, **kwargs)

    def _refuse_later_retries(self) -> None:
        """Raise ValueError if the library's own retries were turned on after the client was made."""
        refuse_later_retries(getattr(self, "retry", None))  # the sync client of valkey-py may have none
        attempts: object = getattr(self, "cluster_error_retry_attempts", 0)
        if attempts:
            raise ValueError(
                "`cluster_error_retry_attempts` must stay 0, because the client's own retries repeat any command; use "
                f"policy=, got {attempts!r}"
            )


class ClusterMixin(ClusterBase):
    """A sync client for a cluster.

    Subclasses pass what the library returns as the client of a node through `_guarded`.
    """

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

        return cluster.send(self.settings, attempt, args)

    def _guarded(self, node: Any) -> Any:
        """Return the client of a node, for the command of the current attempt; outside of one, `node` itself."""
        command = cluster.command_sent()
        return node if command is None else Node(node, command)

    def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        return super()._execute_command(target_node, *args, **kwargs)


class AsyncClusterMixin(ClusterBase):
    """An asyncio client for a cluster; `_connection` is the library's class of connections."""

    _interrupts = True
    _connection: ClassVar[type[Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = cast(Any, self)
        made = patient(own.connection_kwargs.get("connection_class", self._connection))
        own.connection_kwargs["connection_class"] = made  # for the nodes that the client learns of
        for node in own.nodes_manager.startup_nodes.values():
            node.connection_class = made

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command to the nodes it is meant for, as often as the policy allows, and return the response.

        An attempt may take the policy's attempt timeout plus the time for which a blocking command may block. After
        each lost connection another node becomes the default node, because the old one may be down.
        """
        send = super().execute_command

        async def attempt() -> Any:
            self._refuse_later_retries()
            try:
                return await send(*args, **kwargs)
            except self._lost:
                self.replace_default_node()  # this very node may be down
                raise

        return await cluster.asend(self.settings, attempt, args)

    async def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        return await super()._execute_command(target_node, *args, **kwargs)
