"""`ClientLink`: the same as `SocketLink` over a client object of redis-py or valkey-py, in a thread."""

import queue  # gevent and eventlet replace what is in these modules, perhaps after this import
import threading
from typing import Any

from forbear.core.check import is_mapping
from forbear.core.report import text_of
from forbear.run.switch import disabled
from forbear.shared_budget.link import Login, hide_login
from forbear.shared_budget.script import Command, LinkFailed

_MOST_STUCK = 3
"""The most threads that may hang in a client without a timeout before no more are started."""


class ClientLink:
    """A link over `client`, which may connect through TLS, a Sentinel or to a cluster, and blocks.

    Its commands are sent in a daemon thread, one after the other. No method but `wait` blocks. No text contains the
    user and the password of the client, as far as its connection pool knows them.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._stuck: list[threading.Thread] = []  # each hangs in a command that was given up
        self._reset()

    def _reset(self) -> None:
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._woken = threading.Event()
        self._worker: threading.Thread | None = None
        self._due = 0  # responses still to come

    def send(self, command: Command, now: float) -> None:
        """Pass `command` to the thread, which is started if need be; `now` is not read."""
        if self._worker is None:
            self._stuck = [thread for thread in self._stuck if thread.is_alive()]
            if len(self._stuck) >= _MOST_STUCK:
                raise LinkFailed(f"the client still waits for {_MOST_STUCK} answers; give it a socket_timeout")
            self._reset()  # a link may be older than a `patch_all()`
            worker = threading.Thread(
                target=_work,
                args=(self._client, self._commands, self._arrived, self._woken),
                name="forbear-shared-budget",
                daemon=True,
            )
            try:
                worker.start()
            except RuntimeError as error:  # the interpreter is about to end
                raise LinkFailed(str(error)) from None
            self._worker = worker
        self._commands.put(command)
        self._due += 1

    def receive(self) -> list[object]:
        self._woken.clear()
        responses: list[object] = []
        while not self._arrived.empty():
            response = self._arrived.get()
            self._due -= 1
            if isinstance(response, Exception):
                text = f"{type(response).__qualname__}: {text_of(response)}"
                raise LinkFailed(hide_login(text, _login_of(self._client)))
            responses.append(response)
        return responses

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)

    def close(self) -> None:
        self._commands.put(None)
        if self._worker is not None and self._due:
            self._stuck.append(self._worker)
        self._reset()


def _work(
    client: Any,
    commands: "queue.SimpleQueue[Command | None]",
    arrived: "queue.SimpleQueue[object]",
    woken: threading.Event,
) -> None:
    """Send the commands by `client` until None comes, without any retry of forbear's."""
    with disabled():
        while (command := commands.get()) is not None:
            try:
                arrived.put(client.execute_command(command[0].decode(), *command[1:]))
            except Exception as error:
                arrived.put(error)
            woken.set()


def _login_of(client: Any) -> Login:
    """Return the user and the password of a client, None for what it does not have or does not show."""
    options: Any = getattr(getattr(client, "connection_pool", None), "connection_kwargs", None)
    if not is_mapping(options):
        return None, None
    user, password = options.get("username"), options.get("password")
    return user if isinstance(user, str) else None, password if isinstance(password, str) else None


def check_client(client: Any) -> None:
    """Raise TypeError or ValueError for an object that is no sync client, or one that repeats commands itself."""
    import inspect

    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    if isinstance(client, type) or not callable(getattr(client, "execute_command", None)):
        raise TypeError(
            "`url_or_client` must be a URL such as redis://host:6379/0, or a client of redis-py or valkey-py, "
            f"got an object of type {kind}"
        )
    if inspect.iscoroutinefunction(client.execute_command) or ".asyncio." in kind:
        raise TypeError(
            f"`url_or_client` must be a sync client, which serves async code too, got {kind}; pass the sync class"
        )
    if retries_of(client):
        raise ValueError(
            "`url_or_client` must be a client without retries of its own, because a lost ask must not be repeated, "
            f"got {kind} with {retries_of(client)} retries; make it with retry=Retry(NoBackoff(), 0)"
        )


def retries_of(client: Any) -> int:
    """Return the number of times that `client` itself repeats a command whose response is lost, 0 for never."""
    retry = getattr(client, "retry", None)
    if retry is None and hasattr(client, "connection_pool"):
        retry = client.connection_pool.connection_kwargs.get("retry")
    count = getattr(retry, "_retries", None)
    if count is None:
        count = getattr(client, "cluster_error_retry_attempts", 0)
    return count if isinstance(count, int) else 0
