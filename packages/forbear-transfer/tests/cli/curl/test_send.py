"""`forbear curl`: the request that goes over the wire, with its headers and its body, on every attempt."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear_testkit.cli.running import Invoke
from forbear_testkit.clients.wire import Seen, Wire, reply
from forbear_transfer.cli.curl import content

OK = reply(200, b"done\n")
BUSY = reply(503)


def sent(invoke: Invoke, *words: str, attempts: int = 1) -> Seen:
    """Return the request that a line sends, of which URL is the server's; it is the same on each attempt."""
    with Wire(*[BUSY] * (attempts - 1), OK) as server:
        line = [word.replace("URL", server.url) for word in words]
        done = invoke("curl", *line, "--constant", "0")
    assert (done.exit_code, done.stdout) == (0, "done\n"), done.stderr
    assert len({(seen.head, seen.body) for seen in server.seen}) == 1
    assert len(server.seen) == attempts
    return server.seen[-1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("URL/a?b=c",), "GET /a?b=c HTTP/1.1"),
        (("GET", "URL/a"), "GET /a HTTP/1.1"),
        (("delete", "URL/a"), "DELETE /a HTTP/1.1"),
        (("URL/a", "-X", "PURGE"), "PURGE /a HTTP/1.1"),
        (("curl", "-sS", "-X", "PUT", "URL/a", "-d", "x"), "PUT /a HTTP/1.1"),
        (("curl -s -G -d 'a=b c' URL/a",), "GET /a?a=b%20c HTTP/1.1"),
        (("--attempts", "2", "-L", "URL/a", "--report", "none"), "GET /a HTTP/1.1"),
        (("URL/a", "--attempts=2", "--json", "{}"), "POST /a HTTP/1.1"),
        (("-H", "--timeout: 5", "URL/a"), "GET /a HTTP/1.1"),
        (("URL/a/../b/./c",), "GET /b/c HTTP/1.1"),
        (("--path-as-is", "URL/a/../b"), "GET /a/../b HTTP/1.1"),
        (("URL/a%2Fb/%41'(c)|d",), "GET /a%2Fb/%41'(c)|d HTTP/1.1"),
        (("-g", "URL/a[1-3]{b}"), "GET /a[1-3]{b} HTTP/1.1"),
        (("-T", __file__, "URL/dir/"), "PUT /dir/test_send.py HTTP/1.1"),
    ],
)
def test_request_lines(invoke: Invoke, words: tuple[str, ...], line: str) -> None:
    """Method and target are those of curl; options of forbear may be anywhere."""
    assert sent(invoke, *words).line == line


@pytest.mark.parametrize(
    ("words", "headers"),
    [
        ((), {"accept": "*/*", "authorization": None, "accept-encoding": None, "content-type": None, "cookie": None}),
        (("-u", "me:p:w"), {"authorization": "Basic bWU6cDp3"}),
        (("--oauth2-bearer", "abc"), {"authorization": "Bearer abc"}),
        (("-u", "me:pw", "-H", "Authorization: Own"), {"authorization": "Own"}),
        (("-A", "me/1", "-e", "http://x/"), {"user-agent": "me/1", "referer": "http://x/"}),
        (("-A", ""), {"user-agent": None}),
        (("-b", "a=b", "-b", "c=d"), {"cookie": "a=b; c=d"}),
        (("-H", "Cookie: a=b", "-H", "Cookie: c=d"), {"cookie": "a=b; c=d"}),
        (("-H", "Accept:", "-H", "User-Agent:"), {"accept": None, "user-agent": None}),
        (("-H", "X-Empty;", "-H", "X-Two: 1", "-H", "X-Two: 2"), {"x-empty": "", "x-two": "1, 2"}),
        (("-d", "a=1"), {"content-type": "application/x-www-form-urlencoded", "content-length": "3"}),
        (("-d", "a=1", "-H", "Content-Type: text/x"), {"content-type": "text/x"}),
        (("--json", "{}"), {"content-type": "application/json", "accept": "application/json"}),
        (("-G", "-d", "a=1"), {"content-type": None, "content-length": None}),
        (("-r", "0-9"), {"range": "bytes=0-9"}),
        (("--compressed",), {"accept-encoding": "gzip, deflate"}),
        (("--compressed", "-H", "Accept-Encoding: br"), {"accept-encoding": "gzip, deflate"}),
        (("-X", "POST", "-H", "Content-Length: 0"), {"content-length": "0"}),
        (("-d", "a=1", "-H", "Content-Length: 3"), {"content-length": "3", "transfer-encoding": None}),
        (("-d", "a=1", "-H", "Transfer-Encoding: chunked"), {"content-length": None, "transfer-encoding": "chunked"}),
        (("-H", "Host: other.example.com"), {"host": "other.example.com"}),
    ],
)  # fmt: skip
def test_headers_are_those_of_curl(invoke: Invoke, words: tuple[str, ...], headers: dict[str, str | None]) -> None:
    """Headers are those of the line, and those that curl adds unless the line replaces or removes them."""
    seen = sent(invoke, *words, "URL/")
    assert {name: seen.header(name) for name in headers} == headers


def test_user_and_password_of_a_url(invoke: Invoke) -> None:
    """They become Basic credentials, and no part of the Host header."""
    with Wire(OK) as server:
        invoke("curl", server.url.replace("://", "://me:p%40w@"))
    assert server.seen[0].header("authorization") == "Basic bWU6cEB3"
    assert server.seen[0].header("host") == server.url.partition("://")[2]


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("-d", "a=1", "-d", "b=2"), b"a=1&b=2"),
        (("-d", "@FILE"), b"onetwo"),
        (("--data-binary", "@FILE"), b"one\ntwo\n"),
        (("--data-raw", "@FILE"), None),
        (("--data-urlencode", "a@FILE"), b"a=one%0Atwo%0A"),
        (("-T", "FILE"), b"one\ntwo\n"),
        (("-d", "@-"), b"from stdin"),
        (("--data-binary", "@-"), b"from\nstdin"),
        (("-T", "-"), b"from\nstdin"),
    ],
)
def test_bodies_are_sent_again(tmp_path: Path, words: tuple[str, ...], body: bytes | None) -> None:
    """A retry sends the body from its start, files and stdin included; -X PUT makes each of these repeatable."""
    file = tmp_path / "body"
    file.write_bytes(b"one\ntwo\n")
    stdin = b"from stdin" if words == ("-d", "@-") else b"from\nstdin"
    line = [word.replace("FILE", str(file)) for word in words]
    with Wire(BUSY, BUSY, OK) as server:
        options = ["-X", "PUT", "--constant", "0", server.url]
        done = CliRunner().invoke(app, ["curl", *line, *options], input=stdin, catch_exceptions=False)
    assert done.exit_code == 0
    assert [seen.body for seen in server.seen] == [f"@{file}".encode() if body is None else body] * 3
    assert all(seen.header("transfer-encoding") is None for seen in server.seen)


def test_a_form_is_sent_whole_on_every_attempt(invoke: Invoke, tmp_path: Path) -> None:
    """A form has its fields, files and types as curl has them, on every attempt."""
    file = tmp_path / "a file"
    file.write_bytes(b"content")
    parts = ["a=b", 'meta={"x": 1};type=application/json', f"f=@{file};type=text/x;filename=g", f"t=<{file}"]
    line = [word for part in parts for word in ("-F", part)]
    with Wire(BUSY, OK) as server:
        done = invoke("curl", "-X", "PUT", *line, "--form-string", "s=@x;type=y", server.url, "--constant", "0")
    assert done.exit_code == 0
    first, second = (seen.body.decode() for seen in server.seen)
    assert first == second
    assert 'name="a"\r\n\r\nb\r\n' in first
    assert 'name="meta"\r\nContent-Type: application/json\r\n\r\n{"x": 1}\r\n' in first
    assert 'name="f"; filename="g"\r\nContent-Type: text/x\r\n\r\ncontent\r\n' in first
    assert 'name="t"\r\n\r\ncontent\r\n' in first
    assert 'name="s"\r\n\r\n@x;type=y\r\n' in first
    assert server.seen[0].header("content-type") == server.seen[1].header("content-type")


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/related;"])
def test_a_form_whose_header_lacks_the_boundary(invoke: Invoke, kind: str) -> None:
    """Like curl, forbear completes the Content-Type that many API documentations have."""
    seen = sent(invoke, "-F", "a=b", "-H", f"Content-Type: {kind}", "URL/", "--safe", "POST URL/", attempts=2)
    start, _, boundary = (seen.header("content-type") or "").partition("; boundary=")
    assert start == kind.rstrip(";")
    assert boundary
    assert seen.body.startswith(f"--{boundary}\r\n".encode())


@pytest.mark.parametrize("words", [("-d", "a=1"), ("-F", "a=1"), ("-T", __file__), ()])
def test_a_wrong_length_is_refused(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Nothing is sent if the line states another length than that of its body."""
    with Wire(OK) as server:
        done = invoke("curl", *words, "-H", "Content-Length: 2", server.url)
    assert (done.exit_code, server.seen) == (2, [])
    assert "error: the header Content-Length is not the length of the body, " in done.stderr


@pytest.mark.parametrize(
    ("option", "limit"), [(("-d", "@-"), "STDIN_IN_MEMORY"), (("-T", "-"), "STDIN_UPLOAD")], ids=["data", "upload"]
)
def test_a_long_stdin_is_refused(option: tuple[str, str], limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than can be sent again is an error before anything is sent, with a cure."""
    monkeypatch.setattr(content, limit, 1 << 20)
    with Wire(OK) as server:
        line = ["curl", *option, server.url]
        done = CliRunner().invoke(app, line, input=bytes((1 << 20) + 1), catch_exceptions=False)
    assert (done.exit_code, server.seen) == (2, [])
    assert "the body on stdin is longer than 1 MiB" in done.stderr
    assert "-T FILE" in done.stderr


def test_one_token_for_all_attempts(invoke: Invoke) -> None:
    """With a header by which the API drops duplicates, a POST is repeated with the same token."""
    seen = sent(invoke, "-d", "x", "URL/orders", "--idempotency-header", "Idempotency-Key", attempts=3)
    assert len(seen.header("idempotency-key") or "") == 36


@pytest.mark.parametrize(
    ("vouch", "attempts"),
    [
        ((), 1),
        (("--safe", "POST URL/search"), 2),
        (("--safe", "POST URL/other"), 1),
        (("--not-executed", "URL=429,503"), 2),
        (("--not-executed", "URL=429"), 1),
        (("--attempts", "1", "--safe", "POST URL/search"), 1),
        (("--safe", "POST URL/search", "--retry", "0"), 1),
        (("--safe", "POST URL/search", "--retry", "1", "--retry-delay", "0.01", "--retry-max-time", "60"), 2),
    ],
)
def test_a_post_is_repeated_only_if_vouched_for(invoke: Invoke, vouch: tuple[str, ...], attempts: int) -> None:
    """A POST answered 503 is sent again only if the user vouches for it."""
    with Wire(BUSY, OK) as server:
        words = [word.replace("URL", server.url) for word in vouch]
        done = invoke("curl", "-d", "x", f"{server.url}/search", "--constant", "0", *words)
        assert done.exit_code == 0
    assert len(server.seen) == attempts
    cure = f"hint: if a second execution does no harm, vouch for it: --safe 'POST {server.url}/search'\n"
    assert (cure in done.stderr) is (vouch == () or "URL/other" in vouch[1] or vouch[1] == "URL=429")


def test_a_dry_run_sends_nothing(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints what `forbear explain` prints, with its warnings, even if retries are off in the environment."""
    monkeypatch.setenv("FORBEAR_DISABLED", "1")
    with Wire(OK) as server:
        line = ("-X", "PATCH", "-H", "If-Match: unquoted", f"{server.url}/search")
        done = invoke("curl", "--dry-run", *line)
        assert done.stdout == invoke("explain", "curl", *line).stdout
    assert (done.exit_code, server.seen) == (0, [])
    assert "warning: `If-Match` does not count" in done.stderr


@pytest.mark.parametrize(
    ("options", "repeatable", "lost", "busy"),
    [
        ((), "no", "no", "no"),
        (("--safe", "POST https://x.com/a"), "yes", "yes       transient, and you vouch", "yes"),
        (("--safe", "POST https://x.com/b"), "no", "no", "no"),
        (("--not-executed", "https://x.com=503"), "no", "no", "yes       it was not executed"),
        (("--idempotency-header", "Key"), "yes", "yes       transient, and the API drops", "yes       transient"),
        (("--idempotency-header", "Key", "--service", "cloud_storage"), "no", "no", "no"),
        (
            ("--safe", "POST https://x.com/a", "--attempts", "1"),
            "yes",
            "no        limit of 1 attempt",
            "no        limit",
        ),
    ],
)
def test_a_dry_run_obeys_the_options(
    invoke: Invoke, options: tuple[str, ...], repeatable: str, lost: str, busy: str
) -> None:
    """A vouch, a key and the limits change the answer as they change the run."""
    done = invoke("curl", "--dry-run", "-d", "x", "https://x.com/a", *options)
    assert f"\nrepeatable  {repeatable}" in done.stdout
    rows = {row[: row.index("  ")]: row.partition("  ")[2].strip() for row in done.stdout.splitlines() if "  " in row}
    for failure, start in (("reset or timeout after sending", lost), ("503", busy)):
        (text,) = (text for name, text in rows.items() if failure in name)
        assert text.startswith(start)


def test_a_dry_run_shows_the_waits_of_the_options(invoke: Invoke) -> None:
    """The retry options of curl count, too."""
    done = invoke("curl", "--dry-run", "https://x.com/a", "--retry", "1", "--retry-delay", "3")
    assert done.stdout.splitlines()[-1].startswith("waits of 3 s and so on; at most 2 attempts")
