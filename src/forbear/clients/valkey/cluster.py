"""The sync cluster client of valkey-py and its pipelines. The rules live in forbear.exchange.redis."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# valkey-py says the types of only some of what it does.

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from valkey.cluster import ClusterPipeline as _ClusterPipeline
from valkey.cluster import ValkeyCluster as _ValkeyCluster
from valkey.exceptions import ConnectionError, TimeoutError

from forbear.exchange.redis import cluster, drive
from forbear.exchange.redis.settings import ONCE, RECOMMENDED, Settings, refuse_retries, shorten
from forbear.exchange.redis.work import pipeline
from forbear.policy import Policy


class ValkeyCluster(_ValkeyCluster):
    """The same for a cluster: `ValkeyCluster(host="localhost", port=7000)` takes all that the library's own takes.

    The library follows redirections and learns the nodes anew; whether a command is sent again is for the table to
    say. A command for several nodes counts as executed once one of them has it.
    """

    def __init__(self, *args: Any, policy: Policy | None = RECOMMENDED, **kwargs: Any) -> None:
        self.settings = Settings(policy)
        refuse_retries(kwargs)
        shorten(kwargs, self.settings.limit)
        kwargs["cluster_error_retry_attempts"] = 0
        super().__init__(*args, **kwargs)

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command as often as its policy allows and return the reply."""
        return cluster.run(self.settings, partial(self._attempt, super().execute_command, args, kwargs), args)

    def _attempt(self, send: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return send(*args, **kwargs)
        except (ConnectionError, TimeoutError):
            self.replace_default_node()  # it may be what is down
            raise

    def _execute_command(self, target_node: Any, *args: Any, **kwargs: Any) -> Any:
        cluster.visited(target_node)
        send: Callable[..., Any] = super()._execute_command
        return send(target_node, *args, **kwargs)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> "ClusterPipeline":
        """A pipeline of which only what may be repeated is sent again; the library has no transactions on clusters."""
        if transaction or shard_hint:
            refuse: Callable[..., Any] = super().pipeline
            refuse(transaction, shard_hint)
        startup_nodes: Any = self.nodes_manager.startup_nodes
        make: Callable[..., ClusterPipeline] = ClusterPipeline
        pipe = make(
            nodes_manager=self.nodes_manager,
            commands_parser=self.commands_parser,
            startup_nodes=startup_nodes,
            result_callbacks=self.result_callbacks,
            cluster_response_callbacks=self.cluster_response_callbacks,
            cluster_error_retry_attempts=0,
            read_from_replicas=self.read_from_replicas,
            reinitialize_steps=self.reinitialize_steps,
            lock=self._lock,
        )
        pipe.settings = self.settings
        return pipe


class ClusterPipeline(_ClusterPipeline):
    """Commands that go to their nodes together, and by themselves where that fails."""

    settings: Settings = ONCE

    def send_cluster_commands(
        self, stack: Sequence[Any], raise_on_error: bool = True, allow_redirections: bool = True
    ) -> list[Any]:
        """Send what is queued as often as its policy allows and return the replies."""
        options = [dict(queued.options) for queued in stack]  # an attempt takes the targets away
        send_all: Callable[..., Any] = super()._send_cluster_commands
        execute_command: Callable[..., Any] = _ValkeyCluster.execute_command

        def attempt() -> None:
            for queued, given in zip(stack, options, strict=True):
                queued.options = dict(given)
            send_all(stack, raise_on_error=False, allow_redirections=False)

        def send(queued: Any) -> Any:
            send_one = partial(execute_command, self, *queued.args, **options[queued.position])
            return cluster.run(self.settings, send_one, queued.args)

        if not stack:
            return []
        commands = [queued.args for queued in stack]
        drive.run(self.settings, pipeline, commands, attempt)
        cluster.mend(self.settings, stack, send)
        if raise_on_error:
            cluster.raise_first(stack)
        return [queued.result for queued in stack]
