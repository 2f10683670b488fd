"""A fleet in virtual time: many processes of one test share a bucket on a real Valkey, through its script."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from redis import Redis

from forbear.core.budget import micro
from forbear.core.events import BudgetDegraded, BudgetRestored
from forbear.run.runtime import current
from forbear.shared_budget.process import PendingGrant, ProcessShare
from forbear.shared_budget.script import Command, LinkFailed, key_of
from forbear.testing.valkey import valkey_server


class Server:
    """A real server whose script runs on the virtual clock; `latency` is that of its responses, in virtual seconds.

    With `is_down` it takes no command. `commands` counts those that it executed.
    """

    def __init__(self, path: str) -> None:
        self._client: Any = Redis(unix_socket_path=path)
        self.latency = 0.0
        self.is_down = False
        self.commands = 0

    def run(self, *command: bytes) -> Any:
        """Execute a command, and return its response."""
        self.commands += 1
        return self._client.execute_command(command[0].decode(), *command[1:])

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class FleetLink:
    """The link of one simulated process: the server executes a command at once, and the response takes its latency."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._coming: list[tuple[float, object]] = []

    def send(self, command: Command, now: float) -> None:
        """Execute a command at virtual time."""
        if self._server.is_down:
            raise LinkFailed("down")
        response = self._server.run(*command, b"%d" % round(1000 * current.clock()))
        self._coming.append((current.clock() + self._server.latency, response))

    def receive(self) -> list[object]:
        """Return the responses that have arrived by now."""
        now = current.clock()
        arrived = [response for due, response in self._coming if due <= now]
        self._coming = [row for row in self._coming if row[0] > now]
        return arrived

    def wait(self, seconds: float) -> None:
        """Do nothing: virtual time stands still."""

    def close(self) -> None:
        """Forget what is on its way."""
        self._coming = []


class Fleet:
    """The processes that share a bucket on a server that is well; `make` adds one. `news` has the events of all."""

    def __init__(
        self, server: Server, name: str, *, capacity: float = 10, deposit: float = 0.1, window: float = 5.0
    ) -> None:
        self.server = server
        server.latency, server.is_down = 0.0, False
        self.key = key_of(name)
        self.capacity, self.deposit, self.window = capacity, deposit, window
        self.news: list[BudgetDegraded | BudgetRestored] = []
        self.processes = 0

    def make(self) -> ProcessShare:
        """Return the share of a new process."""
        self.processes += 1
        return ProcessShare(
            FleetLink(self.server),
            "x",
            self.key,
            micro(self.capacity),
            micro(self.deposit),
            self.window,
            self.news.append,
        )

    def level(self) -> int:
        """Return the micro-tokens in the bucket; a tenth of the capacity if there is no bucket."""
        tokens = self.server.run(b"HGET", self.key, b"tokens")
        return int(tokens) if isinstance(tokens, bytes) else micro(self.capacity) // 10


@contextmanager
def running_server(**settings: str) -> Generator[Server]:
    """Run a Valkey server for a block."""
    with valkey_server(**settings) as path:
        server = Server(path)
        try:
            yield server
        finally:
            server.close()


def retried(share: ProcessShare) -> bool:
    """PendingGrant for a retry, and return whether it is granted at once."""
    answer = share.ask()
    return (answer.look() is True or answer.end()) if isinstance(answer, PendingGrant) else answer
