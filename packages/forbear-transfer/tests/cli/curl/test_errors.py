"""`forbear curl`: curl's exit codes for errors of the network, and errors of the command line before sending."""

import select
import socket
from contextlib import suppress
from pathlib import Path

import h11
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.answers.curl import _IGNORED, _IGNORED_FLAGS, CurlLine
from forbear.cli.kit import values
from forbear.cli.kit.output import BadInput
from forbear_testkit.cli.running import Invoke
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.secure import untrusted
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_transfer.cli.curl.errors import failure_of
from forbear_transfer.cli.curl.settings import CurlSettings


@pytest.mark.parametrize(
    ("answer", "options", "code", "text"),
    [
        (Answer(end="close"), (), 52, "server disconnected without sending a response"),
        (Answer(end="reset"), (), 56, "Connection reset by peer"),
        (Answer(b"nonsense\r\n\r\n", "close"), (), 56, "illegal status line"),
        (reply(200, b"half", length=9, end="close"), (), 18, "peer closed connection"),
        (reply(404, b"body"), ("-f",), 22, "the server responded with 404"),
        (reply(404, b"body"), ("--fail-with-body",), 22, "the server responded with 404"),
        (reply(302, b"", "Location: ftp://x/"), ("-L",), 3, "a redirect leads to the scheme ftp"),
        (reply(302, b"", "Location: data:text/plain,x"), ("-L",), 3, "a redirect leads to the scheme data"),
        (reply(302, b"", "Location: https://[::1"), ("-L",), 3, "the Location of a redirect is not a URL"),
        (reply(302, b"", "Location: /again"), ("-L", "--max-redirs", "2"), 47, "more than 2 redirects"),
        (Answer(end="stall"), ("--max-time", "0.1"), 28, "the attempt took longer than --max-time 0.1 s"),
        (reply(200, b"", length=9, end="stall"), ("--max-time", "0.1"), 28, "took longer than --max-time 0.1 s"),
    ],
)
def test_exit_codes(invoke: Invoke, answer: Answer, options: tuple[str, ...], code: int, text: str) -> None:
    """Each failure has curl's exit code and one line that says what happened."""
    with Wire(answer) as server:
        done = invoke("curl", server.url, *options, "--attempts", "1")
    assert done.exit_code == code
    assert text.lower() in done.stderr.splitlines()[-1 if "hint" not in done.stderr else -2].lower()
    assert done.stdout == {"--fail-with-body": "body"}.get(options[0] if options else "", "half" if code == 18 else "")


def test_a_refused_connection(invoke: Invoke) -> None:
    """It is retried, even for a POST, for nothing was executed; the exit code is 7."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = invoke("curl", "-d", "x", f"http://127.0.0.1:{port}", "--constant", "0", "--attempts", "2")
    assert done.exit_code == 7
    assert "attempt 2 of 2 in 0 s" in done.stderr
    assert f"error: cannot connect to 127.0.0.1:{port}: Connection refused\n" in done.stderr


def test_an_unknown_host(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 6."""

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    long = invoke("curl", f"http://{'a' * 99}.example.com", "--attempts", "1")
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    done = invoke("curl", "http://api.example.com", "--attempts", "1")
    assert (done.exit_code, long.exit_code) == (6, 6)
    assert "error: cannot connect to api.example.com: Name or service not known\n" in done.stderr


def test_errors_of_tls_have_the_exit_codes_of_curl(invoke: Invoke, tmp_path: Path) -> None:
    """An untrusted certificate is 60 and never retried, no TLS at all 35, a missing CA file 77; -k trusts everyone."""
    with untrusted(tmp_path / "server.pem") as (url, handshakes):
        done = invoke("curl", url)
        assert (done.exit_code, len(handshakes)) == (60, 1)
        assert "--cacert FILE" in done.stderr
        assert invoke("curl", "-k", url, "--attempts", "1").exit_code == 52
        trusting = ("--cacert", str(tmp_path / "server.pem"), "--tlsv1.2", "--attempts", "1")
        assert invoke("curl", url, *trusting).exit_code == 52
        assert invoke("curl", url, "--cacert", "no/such/file").exit_code == 77
        assert invoke("curl", url, "-E", "no/such/file").exit_code == 58

    def plain(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.recv(65536)

    with listening(plain) as port:
        assert invoke("curl", f"https://127.0.0.1:{port}", "--attempts", "1").exit_code == 35


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"])
def test_a_slow_server_cannot_hold_an_attempt(invoke: Invoke, head: bytes) -> None:
    """`--max-time` ends an attempt whose bytes keep arriving, each of them in time."""
    left: list[bool] = []

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(head)
        while not select.select([connection], [], [], 0.02)[0]:
            connection.sendall(b"x")
        left.append(True)

    with listening(drip) as port:
        done = invoke("curl", "-X", "POST", f"http://127.0.0.1:{port}", "--max-time", "0.2")
    assert (done.exit_code, left) == (28, [True])
    assert "error: the attempt took longer than --max-time 0.2 s\n" in done.stderr


def test_a_time_limit_is_named_whatever_ends_the_connection() -> None:
    """The error by which the connection ends when the time is over depends on the server."""
    error = httpx.ReadTimeout("the attempt took longer than --max-time 1 s")
    error.__cause__ = httpx.ReadError("[Errno 104] Connection reset by peer")
    error.__cause__.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    failure = failure_of(error)
    assert (str(failure), failure.exit_code) == ("the attempt took longer than --max-time 1 s", 28)


@pytest.mark.parametrize(
    ("words", "text", "cure"),
    [
        (("--retry-all-errors", "URL"), "--retry-all-errors is not supported", "--safe 'METHOD URL'"),
        (("--digest", "-u", "a:b", "URL"), "--digest is not supported", "-u USER:PASSWORD"),
        (("-n", "URL"), "--netrc is not supported", "-u USER:PASSWORD"),
        (("-C", "-", "URL"), "--continue-at is not supported", "-r RANGE"),
        (("-c", "jar", "URL"), "--cookie-jar is not supported", "-b 'NAME=VALUE'"),
        (("-b", "jar", "URL"), "--cookie FILE is not supported", "-b 'NAME=VALUE'"),
        (("-J", "-O", "URL"), "--remote-header-name is not supported", "-o FILE"),
        (("--location-trusted", "URL"), "--location-trusted is not supported", "use -L"),
        (("--bogus", "URL"), "--bogus is not known here", "leave it out"),
        (("-u", "me", "URL"), "-u needs USER:PASSWORD", "add a colon"),
        (("--max-time", "soon", "URL"), "--max-time needs a number of seconds", "man curl"),
        (("--resolve", "host", "URL"), "--resolve needs HOST:PORT:ADDRESS", "man curl"),
        (("--connect-to", "a:b:c:d", "URL"), "--connect-to needs a whole number", "man curl"),
        (("--proto", "=ftp", "URL"), "--proto needs a list of http and https", "man curl"),
        (("--proto", "=https", "URL"), "--proto does not allow http", "use https"),
        (("-w", "%{speed}", "URL"), "-w has no variable 'speed'", "http_code"),
        (("-w", "@file", "URL"), "-w cannot be read from a file", "into the command"),
        (("-d", "a", "-F", "b=c", "URL"), "-d, -F and -T exclude each other", "choose one"),
        (("-F", "a=b;headers=c", "URL"), ";headers= is not supported", "leave it out"),
        (("-T", "no/such/file", "URL"), "cannot read the body from no/such/file", "name a file"),
        (("URL/{a,b}",), "curl would expand the braces", "with -g"),
        (("URL/[1-9]",), "curl would expand the braces", "with -g"),
        (("URL", "URL"), "must name one URL, got 2", "name one"),
        (("-x", "::", "URL"), "this is not the URL of a proxy", "-x http://HOST:PORT"),
        (("URL", "--safe", "POST"), "`--safe` must hold patterns", ""),
        (("URL", "--not-executed", "URL"), "`--not-executed` must be an origin and statuses", "=429,503"),
        (("URL", "--idempotency-header", "a b"), "`--idempotency-header` must be the name", "Idempotency-Key"),
        (("URL", "--attempts"), "the option --attempts needs a value", "--help"),
        (("URL", "--attempts", "none", "--timeout", "none"), "must not both be none", "limit"),
        (("URL", "--google-credentials"), "only to https URLs of *.googleapis.com", "--oauth2-bearer"),
        (("-A", "a\r\nX: SECRET", "URL"), "the header user-agent has control characters", "leave them out"),
    ],
)  # fmt: skip
def test_what_is_refused(invoke: Invoke, words: tuple[str, ...], text: str, cure: str) -> None:
    """An option that is not followed is an error that names it and the cure, and nothing is sent."""
    with Wire(reply(200)) as server:
        done = invoke("curl", *(word.replace("URL", server.url) for word in words))
    assert (done.exit_code, server.seen, done.stdout) == (2, [], "")
    assert text in done.stderr
    assert cure in done.stderr
    assert "SECRET" not in done.stderr


def test_every_option_of_the_parser_is_followed_harmless_or_refused() -> None:
    """No option that the parser knows is dropped by accident: each of them changes the settings or is an error."""
    silent = []
    for name in sorted(_IGNORED | _IGNORED_FLAGS):
        line = CurlLine()
        line.take(name, "1" if name in _IGNORED else "")
        try:
            settings = CurlSettings.of(line)
        except BadInput:
            continue
        if settings == CurlSettings():
            silent.append(name)
    assert silent == [
        "basic", "disable", "fail-early", "globoff", "keepalive-time", "no-buffer", "no-keepalive",
        "no-progress-meter", "progress-bar", "retry-connrefused", "show-error", "silent", "ssl-reqd", "styled-output",
        "tcp-nodelay", "tlsv1", "trace-time",
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(_IGNORED_FLAGS))
def test_an_error_names_the_option_and_the_cure(invoke: Invoke, name: str) -> None:
    """Nothing in the text about an option that is refused looks like a secret."""
    done = invoke("curl", "--dry-run", f"--{name}", "https://x.com")
    assert "[redacted]" not in done.stderr
    assert done.exit_code == 0 or f"error: the curl option --{name} is not supported\nhint: " in done.stderr


@given(st.sampled_from(sorted(_IGNORED | _IGNORED_FLAGS)), st.text(max_size=30))
def test_any_value_is_taken_or_refused(name: str, value: str) -> None:
    """No value of an option leads to another error than BadInput."""
    line = CurlLine()
    line.take(name, value)
    with suppress(BadInput):
        CurlSettings.of(line)


@pytest.mark.parametrize(
    "location", ["data:text/plain,x", "https://[::1", "https://h:99999999/", "\\\\", "//", "http:///x"]
)
def test_a_redirect_that_is_not_followed(invoke: Invoke, location: str) -> None:
    """Without -L, the response is the result, wherever it leads."""
    with Wire(reply(302, b"here", f"Location: {location}")) as server:
        done = invoke("curl", "-i", server.url)
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"Location: {location}" in done.stdout
    assert done.stdout.endswith("here")


@pytest.mark.parametrize("options", [("-T", "{}"), ("-F", "a=@{}"), ("-F", "a=<{}"), ("-X", "PUT", "-T", "{}")])
@pytest.mark.parametrize("file", ["/dev/zero", "/proc/self/status"])
def test_a_body_without_a_length(invoke: Invoke, file: str, options: tuple[str, ...]) -> None:
    """A device, and a file of the system, has more bytes than it states; nothing is sent."""
    with Wire(reply(200)) as server:
        done = invoke("curl", *(option.format(file) for option in options), server.url)
        assert server.seen == []
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {file} is no file that states its length\nhint: use -T - ")


def test_an_empty_device_is_an_empty_body(invoke: Invoke) -> None:
    """/dev/null is a usual way to send nothing."""
    with Wire(reply(200)) as server:
        assert invoke("curl", "-T", "/dev/null", server.url).exit_code == 0
        assert server.seen[0].body == b""


@pytest.mark.parametrize("command", [("explain", "curl"), ("curl",), ("curl", "--dry-run")])
@pytest.mark.parametrize("option", ["-d", "--data-binary", "--json"])
def test_data_from_a_large_file(
    invoke: Invoke, command: tuple[str, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read whole: the error names the limit and the option for large files."""
    monkeypatch.setattr(values, "MAX_BODY", 2 << 20)
    large = tmp_path / "large"
    large.write_bytes(bytes((2 << 20) + 1))
    done = invoke(*command, option, f"@{large}", "https://h.test/")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {large} is larger than 2 MiB\nhint: send a large file with curl's")


def test_a_file_that_changes_while_it_is_sent() -> None:
    """h11 and h2 refuse a body of another length than its header states; httpx hands their errors on."""
    failure = failure_of(h11.LocalProtocolError("Too little data for declared Content-Length"))
    assert (failure.exit_code, failure.message) == (55, "a file changed its length while it was sent")
