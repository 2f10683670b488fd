"""`forbear cloud`: it prints its URL and serves until a signal stops it."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from forbear_testkit.cli.running import Finish, Invoke, Start


@pytest.fixture
def start_module(env: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `python -m forbear_cloud`; kill what is left at the end."""
    with ExitStack() as stack:

        def call(*args: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "forbear_cloud", *args]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield call


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(signum: signal.Signals, start: Start) -> None:
    """The URL comes on stdout as soon as it answers, what to do with it on stderr, and it ends with 0."""
    process = start("cloud")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    body = json.dumps({"name": "bkt"}).encode()
    request = urllib.request.Request(f"{url}/storage/v1/b?project=p", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        assert json.load(response)["name"] == "bkt"
    process.send_signal(signum)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert f"export STORAGE_EMULATOR_HOST={url}\n" in err


def test_named_buckets_exist_at_the_start(start: Start) -> None:
    """The named buckets exist when the URL is printed."""
    process = start("cloud", "--bucket", "one", "--bucket", "two", "--bucket", "one")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert [status(f"{url}/storage/v1/b/{name}") for name in ("one", "two", "three")] == [200, 200, 404]


def test_a_bucket_that_cannot_be(finish: Finish) -> None:
    """A name that no bucket can have is refused before anything is served."""
    done = finish("cloud", "--bucket", "gs://One")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: `--bucket` must be the name of a bucket, got 'gs://One'\nhint: use 3 to 222")


def test_faults_are_the_same_for_the_same_seed(start: Start) -> None:
    """With `--faults` some requests fail, the same ones for the same seed."""
    statuses: list[list[int]] = []
    for _ in range(2):
        process = start("cloud", "--faults", "7")
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        statuses.append([status(f"{url}/storage/v1/b/no-such-bucket") for _ in range(30)])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert statuses[0] == statuses[1]
    assert len(set(statuses[0])) > 2


def status(url: str | urllib.request.Request) -> int:
    """Return the status of the response, 0 without one."""
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def test_a_port_in_use(finish: Finish) -> None:
    """An address in use is reported in two lines, with exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = finish("cloud", "--port", port)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1, port {port}: Address already in use\n"
        "hint: choose another --port, or 0 for a free one\n"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "no-such-host.invalid", "localhost.evil.example"])
def test_only_loopback(host: str, invoke: Invoke) -> None:
    """An address that other machines may reach, or any name but localhost, is refused in words."""
    done = invoke("cloud", "--host", host)
    assert done.exit_code == 2
    assert done.stderr == (
        "error: `--host` must be a loopback address: the embedded cloud is for tests on this machine, "
        f"got {host!r}\nhint: use 127.0.0.1 or ::1\n"
    )


def test_options_reach_the_cloud(start: Start) -> None:
    """One more host is allowed, and no more is stored than fits."""
    process = start("cloud", "--bucket", "one", "--allow-host", "gcs.test", "--memory-limit", "1")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    for host, expected in (("gcs.test:80", 200), ("other.test", 403)):
        assert status(urllib.request.Request(f"{url}/storage/v1/b/one", headers={"Host": host})) == expected
    upload = f"{url}/upload/storage/v1/b/one/o?uploadType=media&name=a"
    assert status(urllib.request.Request(upload, bytes(2 * 1024**2))) == 413


def test_the_module_serves_without_forbear(start_module: Callable[..., subprocess.Popen[str]]) -> None:
    """`python -m forbear_cloud` has the same options and output, and loads no module of forbear or of click."""
    process = start_module("--bucket", "one")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert status(f"{url}/storage/v1/b/one") == 200
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert f"export STORAGE_EMULATOR_HOST={url}\n" in err
    script = "import sys; import forbear_cloud.__main__; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"forbear", "click"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--host", "192.0.2.1"), "error: `--host` must be a loopback address"),
        (("--bucket", "gs://One"), "error: `--bucket` must be the name of a bucket, got 'gs://One'\nhint: use 3 to"),
        (("--port", "70000"), "--port must be from 0 to 65535, got 70000"),
        (("--memory-limit", "0"), "--memory-limit must be at least 1, got 0"),
    ],
)
def test_options_of_the_module_that_cannot_be_used(
    start_module: Callable[..., subprocess.Popen[str]], arguments: tuple[str, ...], error: str
) -> None:
    """They are reported with exit code 2, as by the command."""
    process = start_module(*arguments)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert error in err
