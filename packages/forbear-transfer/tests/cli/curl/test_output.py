"""`forbear curl`: where the response goes, and what else is printed."""

import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from forbear.cli.app import app
from forbear_testkit.cli.running import FORBEAR, Invoke
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_transfer.cli.curl.send import CurlRun

OK = reply(200, b"new", "X-One: 1")
BUSY = reply(503)
HEAD = "HTTP/1.1 200 Whatever\r\nX-One: 1\r\nContent-Length: 3\r\n\r\n"


def chunked(*pieces: bytes) -> Answer:
    """Return a response whose body ends by itself."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)


@pytest.mark.parametrize(
    ("options", "out"),
    [
        ((), "new"),
        (("-i",), f"{HEAD}new"),
        (("-I", "-X", "GET"), HEAD),
        (("-D", "-"), f"{HEAD}new"),
        (("-o", "-"), "new"),
        (("-w", "%{http_code} %{size_download} %{method} %{num_retries}%%\\n"), "new200 3 GET 1%\n"),
        (("-o", "file", "-w", "%{response_code}"), "200"),
    ],
)
def test_the_last_response_goes_to_stdout(
    invoke: Invoke, options: tuple[str, ...], out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response of the last attempt goes to stdout, with its headers if they are wanted."""
    monkeypatch.chdir(tmp_path)
    with Wire(BUSY, OK) as server:
        done = invoke("curl", server.url, *options, "--constant", "0")
    assert (done.exit_code, done.stdout.replace("\r\n", "\n")) == (0, out.replace("\r\n", "\n"))
    assert done.stderr == "forbear: 503 Service Unavailable; attempt 2 of 5 in 0 s\nforbear: attempt 2 worked\n"


def test_nothing_but_the_response(invoke: Invoke) -> None:
    """Without a retry stderr is empty; `--report none` keeps it so."""
    with Wire(OK) as server:
        assert invoke("curl", "-s", server.url).stderr == ""
    with Wire(BUSY, OK) as server:
        assert invoke("curl", server.url, "--constant", "0", "--report", "none").stderr == ""


def test_the_report_as_json(invoke: Invoke) -> None:
    """One line of JSON on stderr has every request and its failed attempts, and no secret."""
    with Wire(BUSY, OK) as server:
        url = f"{server.url}/a?key=SECRET"
        done = invoke("curl", url, "-H", "Authorization: SECRET", "--constant", "0", "--report", "json")
    document = json.loads(done.stderr)
    (request,) = document["requests"]
    (failure,) = request.pop("failures")
    assert "SECRET" not in done.stderr
    assert document["exit_code"] == 0
    assert (failure["number"], failure["error"], failure["delay"]) == (1, "HTTP 503", 0)
    assert request == {
        "method": "GET",
        "host": url.split("/")[2],
        "path": "/a",
        "service": "rfc9110",
        "operation": None,
        "safety": "always",
        "repeatable": True,
        "vouched": False,
        "status": 200,
        "attempts": 2,
        "gave_up": None,
        "maybe_done": False,
    }


def test_the_report_has_the_code_of_a_signal(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the exit code of the command."""

    def end(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(CurlRun, "_follow", end)
    done = invoke("curl", "http://127.0.0.1:1", "--report", "json")
    assert done.exit_code == json.loads(done.stderr)["exit_code"] == 128 + signal.SIGTERM


def test_the_report_has_the_code_of_a_request_that_cannot_be_judged(invoke: Invoke) -> None:
    """A profile that the service of the host has not is an error of the command line, before anything is sent."""
    done = invoke("curl", "http://127.0.0.1:1", "--report", "json", "--profile", "gsutil")
    report, error = done.stderr.split("error: ")
    assert done.exit_code == json.loads(report)["exit_code"] == 2
    assert error.startswith("no such profile: rfc9110.gsutil\nhint: the profiles are default, ")


WEBHOOKS = (
    "hooks.slack.com/services/T0123/B0123/SECRETabcd1234",
    "discord.com/api/webhooks/123456/SECRETabcd1234",
    "api.telegram.org/bot123456789:SECRETabcd1234/sendMessage",
    "example.com/ghp_SECRETabcdefghijklmnop1234",
)


@pytest.mark.parametrize("url", WEBHOOKS)
def test_a_secret_path_is_hidden(invoke: Invoke, url: str, tmp_path: Path) -> None:
    """Neither the report nor `explain` prints the token of a webhook, nor does the hint that names a pattern."""
    proxy = ("-x", "http://127.0.0.1:1", "--attempts", "1")
    recorded = tmp_path / "recorded.har"
    entry = {"request": {"method": "POST", "url": f"https://{url}", "headers": []}, "response": {"status": 503}}
    recorded.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    for words in (
        ("curl", "-d", "x", f"https://{url}", *proxy, "--report", "json"),
        ("curl", "-d", "x", f"https://{url}", *proxy, "-v"),
        ("curl", "-d", "x", f"https://{url}", "--dry-run"),
        ("explain", "POST", f"https://{url}", "--json"),
        ("explain", str(recorded)),
        ("explain", str(recorded), "--json"),
    ):
        done = invoke(*words)
        assert "[redacted]" in done.output
        assert "SECRET" not in done.output


def test_the_hint_covers_the_request(invoke: Invoke) -> None:
    """The patterns that it names make the request repeatable, also with an override header and an id in the path."""
    with Wire(reply(503), reply(503), reply(200)) as server:
        line = ("curl", "-d", "x", f"{server.url}/orders/7", "-H", "X-HTTP-Method-Override: PATCH", "--constant", "0")
        (hint,) = [text for text in invoke(*line).stderr.splitlines() if text.startswith("hint: ")]
        options = shlex.split(hint.rpartition("it: ")[2])
        assert options[1::2] == [f"{method} {server.url}/orders/7" for method in ("POST", "PATCH")]
        assert invoke(*line, *options).exit_code == 0
        assert len(server.seen) == 3


def test_verbose_hides_secrets(invoke: Invoke) -> None:
    """`-v` prints the judgement and the headers of every attempt, without what is secret."""
    with Wire(BUSY, OK) as server:
        line = ("-H", "X-Goog-Api-Key: SECRET", "-u", "me:SECRET", "-b", "sid=SECRET", f"{server.url}/a?key=SECRET")
        done = invoke("curl", "-v", *line, "--constant", "0")
    assert "* GET on a host that no table knows: may be executed twice (rfc9110, always)\n" in done.stderr
    assert done.stderr.count("> GET /a?key=[redacted]\n") == 2
    assert "< HTTP/1.1 200 Whatever\n< X-One: 1\n" in done.stderr
    assert "SECRET" not in done.stderr
    assert "bWU6" not in done.stderr  # the encoded user


def test_a_file_appears_when_it_is_complete(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file appears once it is complete, under the name of -o, or of the URL with -O, and keeps its permissions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    with Wire(OK) as server:
        for options in (("-o", "old"), ("-O",), ("-o", "sub/x", "--create-dirs"), ("--output-dir", "sub", "-o", "y")):
            done = invoke("curl", f"{server.url}/a/name.txt?x=/y", *options)
            assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    files = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"old": "new", "name.txt": "new", "sub/x": "new", "sub/y": "new"}
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("answer", "options", "code"),
    [
        (reply(404, b"no"), ("-f",), 22),
        (reply(200, b"half", length=9, end="close"), ("--attempts", "1"), 18),
    ],
)
def test_a_failure_keeps_the_old_file(
    invoke: Invoke, tmp_path: Path, answer: Answer, options: tuple[str, ...], code: int
) -> None:
    """A response that fails or breaks replaces no file, and leaves no part behind."""
    file = tmp_path / "file"
    file.write_text("old")
    with Wire(answer) as server:
        assert invoke("curl", server.url, "-o", str(file), *options).exit_code == code
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


def test_no_file_is_open_to_all_meanwhile(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file has the mode that the umask leaves, and the umask is never looser than private to find it out."""
    before = os.umask(0o027)
    masks: list[int] = []

    def set_mask(mask: int) -> int:
        masks.append(mask)
        return umask(mask)

    umask = os.umask
    monkeypatch.setattr(os, "umask", set_mask)
    try:
        with Wire(OK) as server:
            assert invoke("curl", server.url, "-o", str(tmp_path / "new")).exit_code == 0
    finally:
        umask(before)
    assert (masks, (tmp_path / "new").stat().st_mode & 0o777) == ([0o077, 0o027], 0o640)


def test_a_link_and_a_device_stay(invoke: Invoke, tmp_path: Path) -> None:
    """The file that a link names is replaced, not the link; a device is written directly."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with Wire(OK) as server:
        assert invoke("curl", server.url, "-o", str(tmp_path / "link")).exit_code == 0
        assert invoke("curl", server.url, "-o", os.devnull).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    assert not Path(os.devnull).is_file()


def test_output_that_cannot_be_written_is_noticed_first(invoke: Invoke, tmp_path: Path) -> None:
    """Nothing is sent if the response would be lost."""
    with Wire(OK) as server:
        done = invoke("curl", "-X", "POST", server.url, "-o", str(tmp_path / "no" / "file"))
    assert (done.exit_code, server.seen) == (23, [])
    assert f"error: cannot write {tmp_path}/no/file: No such file or directory" in done.stderr


def test_compressed_bodies(invoke: Invoke) -> None:
    """With `--compressed` the body is decoded; without it, it is written as it is."""
    with Wire(reply(200, gzip.compress(b"text", mtime=0), "Content-Encoding: gzip")) as server:
        assert invoke("curl", "--compressed", server.url).stdout_bytes == b"text"
        assert invoke("curl", server.url).stdout_bytes == gzip.compress(b"text", mtime=0)


def test_a_broken_download_is_continued(invoke: Invoke) -> None:
    """The rest is requested by its range, and stdout has the whole body once."""
    tag = 'ETag: "1"'
    first = reply(200, b"0123", tag, length=10, end="close")
    rest = reply(206, b"456789", tag, "Content-Range: bytes 4-9/10")
    with Wire(first, rest) as server:
        done = invoke("curl", server.url, "--constant", "0")
    assert (done.exit_code, done.stdout) == (0, "0123456789")
    assert server.seen[1].header("range") == "bytes=4-9"
    assert "attempt 2" in done.stderr


def test_a_reader_that_leaves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If the reader of stdout is gone, the command ends with 23, as curl does."""
    reader, writer = os.pipe()
    os.close(reader)
    with Wire(OK) as server, suppress(BrokenPipeError), os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit, match=r"^23$"):
            app(["curl", server.url])
    assert "error: cannot write to stdout: the reader of stdout is gone\n" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_is_not_held_back(env: dict[str, str], ended_by: signal.Signals) -> None:
    """Each piece of a response is written at once; a signal ends the command, and so does a reader that leaves."""
    stall = Answer(chunked(b"first\n").data[:-5], "stall")
    with (
        Wire(stall) as server,
        subprocess.Popen([*FORBEAR, "curl", server.url], env=env, stdout=-1, stderr=-1, text=True) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        process.send_signal(ended_by)
        assert process.wait(20) == 128 + ended_by
        assert process.stderr is not None
        assert process.stderr.read().strip() == ""
    endless = Answer(b"HTTP/1.1 200 OK\r\n\r\n" + b"line\n" * 200_000, "close")
    with Wire(endless) as server:
        script = f'set -o pipefail; "$0" -m forbear curl {server.url} | head -n 1'
        done = subprocess.run(["bash", "-c", script, FORBEAR[0]], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("line\n", 23)
    assert done.stderr.startswith("error: cannot write to stdout: the reader of stdout is gone\n")
