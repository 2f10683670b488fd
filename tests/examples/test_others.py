"""The examples for Redis and for programs that `forbear run` starts."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import redis

import forbear
from forbear.clients.redis import Redis
from forbear.testing import virtual_time
from forbear.testing.proxy import Proxy
from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.wire import Answer, Seen, reply
from forbear_testkit.examples.load import FOLDER, load
from forbear_testkit.examples.service import Service


def test_hits_are_counted_once() -> None:
    """SADD is sent again after a lost response; INCR is not, and its error says that it may have been executed."""
    program = load("redis_counters")
    lost = set[bytes]()

    def lose_first(request: bytes, response: bytes | None) -> bool:
        for command in (b"SADD", b"INCR"):
            if command in request and response is not None and command not in lost:
                lost.add(command)
                return True
        return False

    with valkey_server() as path, Proxy(path, lose_first) as proxy, virtual_time() as time:
        counters = Redis(port=proxy.port)
        assert program.visit(counters, "home", "ada") == 1
        assert len(time.slept) == 1
        with pytest.raises(redis.ConnectionError) as raised:
            program.hit(counters, "home")
        assert program.hit(counters, "home") == 2
        counters.close()
    report = forbear.report(raised.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE
    assert proxy.cuts == {"responses": 2}


def _wheel(folder: Path) -> bytes:
    """Return a package `greeting` with one module."""
    path = folder / "wheel.zip"
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("greeting.py", "TEXT = 'hello'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path.read_bytes()


def test_a_package_is_installed(tmp_path: Path) -> None:
    """pip runs again after its index was down, and installs the package once."""
    wheel = _wheel(tmp_path)
    name = "greeting-1.0-py3-none-any.whl"

    def index(request: Seen) -> Answer:
        if name in request.target:
            return reply(200, wheel, "Content-Type: application/zip")
        return reply(200, f'<a href="/{name}">{name}</a>'.encode(), "Content-Type: text/html")

    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "INITIAL": "1ms",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_WARN_CONFLICTS": "0",  # the value of what it switches off: a comparison that takes a second
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
    }
    with Service(index) as service:
        service.fail(503)
        done = subprocess.run(
            [FOLDER / "pip_install.sh", "--index-url", service.url, "--target", tmp_path / "site", "greeting"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "forbear: attempt 2 worked" in done.stderr
    assert (tmp_path / "site" / "greeting.py").read_text() == "TEXT = 'hello'\n"
    assert service.count(f"GET /{name}") == 1
