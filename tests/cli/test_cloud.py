"""`forbear cloud`: it serves until it is told to stop, and says where."""

import json
import signal
import socket
import urllib.error
import urllib.request

import pytest

from tests.cli.conftest import Finish, Start


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(signum: signal.Signals, start: Start) -> None:
    """The URL comes on stdout as soon as it answers, what to do with it on stderr, and it ends with 0."""
    process = start("cloud")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    body = json.dumps({"name": "bkt"}).encode()
    request = urllib.request.Request(f"{url}/storage/v1/b?project=p", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        assert json.load(reply)["name"] == "bkt"
    process.send_signal(signum)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert f"export STORAGE_EMULATOR_HOST={url}\n" in err


def test_buckets(start: Start) -> None:
    """Buckets that are named are there when the URL is told."""
    process = start("cloud", "--bucket", "one", "--bucket", "two", "--bucket", "one")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert [status(f"{url}/storage/v1/b/{name}") for name in ("one", "two", "three")] == [200, 200, 404]


def test_a_bucket_that_cannot_be(finish: Finish) -> None:
    """A name that no bucket can have is refused before anything is served."""
    done = finish("cloud", "--bucket", "gs://One")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: `--bucket` must be the name of a bucket, got 'gs://One'\nhint: use 3 to 222")


def test_a_storm(start: Start) -> None:
    """With a storm some requests fail, the same ones for the same seed."""
    seen: list[list[int]] = []
    for _ in range(2):
        process = start("cloud", "--storm", "7")
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        seen.append([status(f"{url}/storage/v1/b/no-such-bucket") for _ in range(30)])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 2


def status(url: str) -> int:
    """The status of the reply, 0 where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def test_a_port_in_use(finish: Finish) -> None:
    """Where the address cannot be had, two lines say so, and the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = finish("cloud", "--port", port)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1, port {port}: Address already in use\n"
        "hint: choose another --port, or 0 for a free one\n"
    )


def test_a_host_that_is_not_ours(finish: Finish) -> None:
    """An address of another machine or a name that is not known is refused in words."""
    done = finish("cloud", "--host", "no-such-host.invalid")
    assert done.returncode == 2
    assert done.stderr == (
        "error: cannot listen on no-such-host.invalid, port 0: the host is not known\nhint: choose another --host\n"
    )
