"""`forbear curl` beside the real curl: the same requests and the same exit codes."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from forbear_testkit.cli.running import Invoke
from forbear_testkit.clients.wire import Answer, Seen, Wire, reply

pytestmark = pytest.mark.soak

VARYING = ("host", "user-agent", "expect", "connection")


@pytest.fixture
def curl() -> str:
    """The path of curl; without it the test fails, for soaking is when it is to be run."""
    program = shutil.which("curl")
    assert program is not None, "curl is not installed: install it, or run `make test` without the soak"
    return program


@pytest.mark.parametrize(
    "words",
    [
        ("URL/a",),
        ("-X", "PUT", "-d", "a=1", "-d", "b=2", "URL/a"),
        ("-d", "@FILE", "URL/a"),
        ("--data-binary", "@FILE", "-X", "PUT", "URL/a"),
        ("--data-raw", "@FILE", "URL/a"),
        ("--data-urlencode", "a@FILE", "URL/a"),
        ("--data-urlencode", "@FILE", "URL/a"),
        ("--data-urlencode", "=a&b/c", "URL/a"),
        ("-G", "--data-urlencode", "q=a&b", "-d", "c=d", "URL/a?x=y"),
        ("--json", "{}", "URL/a"),
        ("--json", "{}", "-X", "PATCH", "-H", "Content-Type: application/merge", "URL/a"),
        ("-T", "FILE", "URL/dir/"),
        ("-F", "a=b", "-F", "f=@FILE", "URL/a"),
        ("-F", 'm={"a": 1};type=application/json', "--form-string", "s=@x;type=y", "URL/a"),
        ("-F", "t=<FILE", "-F", "f=@FILE;type=text/x;filename=g", "URL/a"),
        ("-F", "a=b", "-H", "Content-Type: multipart/form-data", "URL/a"),
        ("-d", "a=b", "-H", "Transfer-Encoding: chunked", "URL/a"),
        ("-I", "URL/a"),
        ("-u", "me:p:w", "-H", "X: y", "URL/a/../b"),
        ("--path-as-is", "URL/a/../b"),
        ("--oauth2-bearer", "abc", "URL/a"),
        ("-r", "0-4", "-e", "http://x", "URL/a"),
        ("-b", "a=b; c=d", "URL/a"),
        ("-H", "Accept:", "-H", "E;", "URL/a"),
        ("--url-query", "+a=b%20c", "URL/a?q=1"),
        ("URL/a%2fb/c?d=e|'f'#frag",),
        ("-g", "URL/a{b}[1-2]"),
    ],
)
def test_the_same_request(invoke: Invoke, curl: str, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Request line, headers and body are equal, but for headers that name the client or the connection."""
    file = tmp_path / "body.txt"
    file.write_bytes(b"one\r\ntwo\n")
    line = [word.replace("FILE", str(file)) for word in words]
    with Wire(reply(200, b"ok")) as server:
        line = [word.replace("URL", server.url) for word in line]
        subprocess.run([curl, "-s", *line], capture_output=True, check=True)
        done = invoke("curl", *line)
    assert done.exit_code == 0
    theirs, ours = map(described, server.seen)
    assert ours == theirs


def described(seen: Seen) -> tuple[str, dict[str, str], bytes]:
    """Return request line, headers and body, with another boundary."""
    lines = [line.lower().partition(":") for line in seen.head.split("\r\n")[1:]]
    headers = {name: value.strip() for name, colon, value in lines if colon}
    kind, _, boundary = headers.get("content-type", "").partition("boundary=")
    body = seen.body
    if boundary:
        original = seen.header("content-type") or ""
        body = body.replace(original.partition("boundary=")[2].encode(), b"BOUNDARY")
        headers |= {"content-type": kind, "content-length": ""}
    return seen.line, {name: value for name, value in headers.items() if name not in VARYING}, body


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (Answer(end="close"), ()),
        (Answer(end="reset"), ()),
        (reply(200, b"half", length=9, end="close"), ()),
        (reply(404, b"body"), ()),
        (reply(404, b"body"), ("-f",)),
        (reply(404, b"body"), ("--fail-with-body",)),
        (reply(302, b"", "Location: /again"), ("-L", "--max-redirs", "2")),
        (Answer(end="stall"), ("--max-time", "0.3")),
        (Answer(end="close"), ("-w", "%{http_code} %{exitcode}")),
        (reply(404, b"body"), ("-f", "-w", "%{http_code} %{exitcode}")),
        (reply(200, b"x"), ("-o", "/no/such/folder/file")),
        (reply(200, b"x"), ("-w", "%{http_code} %{size_download} %{content_type}|%{num_redirects}%%\\n")),
        (reply(200, b"x", "Content-Type: text/x"), ("-i",)),
        (reply(200, b"x"), ("-I", "-X", "GET")),
    ],
)
def test_the_same_end(invoke: Invoke, curl: str, answer: Answer, options: tuple[str, ...]) -> None:
    """Exit code and stdout are equal."""
    with Wire(answer) as server:
        theirs = subprocess.run([curl, "-s", *options, server.url], capture_output=True, check=False)
        ours = invoke("curl", *options, server.url, "--attempts", "1")
    assert (ours.exit_code, ours.stdout_bytes) == (theirs.returncode, theirs.stdout)


def test_the_same_end_without_a_server(invoke: Invoke, curl: str) -> None:
    """A refused connection has the same exit code."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    theirs = subprocess.run([curl, "-s", url], capture_output=True, check=False)
    assert invoke("curl", url, "--attempts", "1").exit_code == theirs.returncode == 7
