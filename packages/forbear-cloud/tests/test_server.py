"""The cloud starts and stops, within a program and in the foreground."""

import asyncio
import gc
import signal
import subprocess
import sys
from contextlib import suppress

import httpx
import pytest

from forbear_cloud import Cloud, serve
from forbear_testkit.cloud.sockets import connect


def test_life_cycle() -> None:
    """The cloud has a URL only while it runs. Starting or stopping it twice is harmless, and a stop keeps its state."""
    cloud = Cloud()
    with pytest.raises(RuntimeError, match="no `url` before it runs"):
        _ = cloud.url
    cloud.start()
    url = cloud.url
    assert cloud.start().url == url
    cloud.store.create_bucket("kept")
    with connect(cloud) as idle:
        idle.sendall(b"GET /_cloud/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        cloud.stop()
        assert idle.recv(1) == b""
    cloud.stop()
    with cloud:
        assert httpx.get(f"{cloud.url}/storage/v1/b/kept").status_code == 200


async def test_async_with() -> None:
    """It serves async code as well, in its own thread."""
    async with Cloud() as cloud, httpx.AsyncClient(base_url=cloud.url) as http:
        responses = await asyncio.gather(*(http.get("/_cloud/health") for _ in range(3)))
    assert [response.status_code for response in responses] == [200, 200, 200]


def test_a_taken_port_is_an_error(cloud: Cloud) -> None:
    """For a port in use, the error says what to do."""
    port = int(cloud.url.rpartition(":")[2])
    with pytest.raises(OSError, match=rf"`port` {port} on 127.0.0.1 cannot be listened on .*choose another, or 0"):
        Cloud(port=port).start()


@pytest.mark.parametrize(
    "busy", [b"", b"GET /_cloud/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /x HTTP/1.1\r\nHost"]
)
def test_stopping_leaves_nothing_open(busy: bytes) -> None:
    """A stop also closes connections that are just being accepted, served or read."""
    for _ in range(20):
        with Cloud() as cloud:
            socks = [connect(cloud) for _ in range(5)]
            for sock in socks:
                sock.sendall(busy)
        for sock in socks:
            with sock, suppress(ConnectionError):
                while sock.recv(65_536):
                    pass
    gc.collect()


def test_ipv6() -> None:
    """It listens on the IPv6 loopback too."""
    with Cloud(host="::1") as cloud:
        assert cloud.url.startswith("http://[::1]:")
        assert httpx.get(f"{cloud.url}/_cloud/health").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_stops_on_signals(number: signal.Signals) -> None:
    """In the foreground it runs until SIGINT or SIGTERM, and ends cleanly."""
    code = "from forbear_cloud import serve; serve(on_ready=lambda cloud: print(cloud.url, flush=True))"
    process = subprocess.Popen([sys.executable, "-X", "dev", "-c", code], stdout=-1, stderr=-1, text=True)
    with process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/_cloud/health").status_code == 200
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


_SIGNAL_WHILE_WAITING = """
import signal, sys
from forbear_cloud import serve

def interrupt(frame, event, called):
    name = frame.f_code.co_qualname if event == "call" else getattr(called, "__name__", "")
    if (event, name) in (("call", "Condition.wait"), ("c_call", "get")):
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

serve(on_ready=lambda cloud: sys.setprofile(interrupt))
"""


def test_a_signal_as_the_wait_begins() -> None:
    """The server stops, too, if the signal arrives just when the wait for it holds a lock."""
    assert subprocess.run([sys.executable, "-c", _SIGNAL_WHILE_WAITING], timeout=60, check=False).returncode == 0


def test_serve_tells_of_a_taken_port(cloud: Cloud) -> None:
    """In the foreground, a port in use is an error at once as well."""
    with pytest.raises(OSError, match="choose another"):
        serve(port=int(cloud.url.rpartition(":")[2]))


@pytest.mark.parametrize("package", ["h11", "google_crc32c"])
def test_a_missing_package_is_told(package: str) -> None:
    """Without the extra, importing the cloud raises an error that says what to install."""
    code = f"import sys; sys.modules[{package!r}] = None; import forbear_cloud"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "forbear[cloud]"' in done.stderr
