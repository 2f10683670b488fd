"""Secrets and control characters: none reaches stderr, `--json`, a manifest or what `explain` prints."""

import json
import os
import stat
from pathlib import Path

import pytest

from forbear_testkit.cli.running import Invoke
from forbear_testkit.clients.wire import Answer, Wire, reply

SECRET = "SECRETSESSIONID1234567890"
SESSION = f"/upload/storage/v1/b/demo/o?uploadType=resumable&upload_id={SECRET}"
EVIL = "\x1b]0;owned\x07\x9b2J\u202egpj.\nerror: forged"
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\nerror: forged")

BAD_LINE = Answer(b"HTTP/1.1 abc def\r\n\r\n", "close")
LONG_HEADER = Answer(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", "close")
ECHO = reply(403, json.dumps({"error": {"message": f"no: {SESSION} cookie: sid={SECRET}{EVIL}"}}).encode())
REDIRECT = reply(307, b"", f"Location: http://127.0.0.1:1/x?upload_id={SECRET}")


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


@pytest.mark.parametrize("answer", [BAD_LINE, LONG_HEADER, ECHO, REDIRECT], ids=["line", "header", "echo", "redirect"])
def test_the_url_of_a_session_stays_secret(invoke: Invoke, tmp_path: Path, answer: Answer) -> None:
    """Whatever goes wrong in an upload session, its id is in no text that leaves the program."""
    large, manifest = tmp_path / "large", tmp_path / "done.csv"
    large.write_bytes(bytes(9 * 1024 * 1024))
    with Wire(reply(200)) as server:
        server.answers = [reply(200, b"", f"Location: {server.url}{SESSION}"), answer]
        done = invoke(
            "cp", "--json", "--manifest", str(manifest), "--retry", "attempts=1", "--endpoint", server.url,
            "--anonymous", str(large), "gs://demo/large",
        )  # fmt: skip
        assert SECRET in server.seen[1].target
    assert done.exit_code == 1
    for text in (done.stdout, done.stderr, manifest.read_text()):
        assert text
        assert SECRET not in text
        assert not any(character in text for character in OBEYED)


def test_what_a_server_says_cannot_command_the_terminal(invoke: Invoke, tmp_path: Path) -> None:
    """Names in listings and messages of errors are shown in one line each, with all that a terminal obeys spelt out."""
    name = f"a/{EVIL}"
    fields = {"bucket": "demo", "generation": "1", "size": "1", "updated": "2026-01-01T00:00:00Z"}
    page = reply(200, json.dumps({"kind": "storage#objects", "items": [{**fields, "name": name}]}).encode())
    refused = reply(403, json.dumps({"error": {"message": f"you may not {EVIL}"}}).encode())
    with Wire(reply(404), page, refused) as server:  # no object has the name of the pattern
        done = invoke(
            "cp", "-r", "--endpoint", server.url, "--anonymous", "--retry", "attempts=1", "gs://demo/**", str(tmp_path)
        )
    assert done.exit_code == 1
    assert "\\x1b]0;owned" in done.stderr
    assert not any(character in done.stdout + done.stderr for character in OBEYED)


@pytest.mark.parametrize(
    "endpoint", ["http://me:{}@127.0.0.1:1", "ftp://me:{}@127.0.0.1", "http://me:{}@127.0.0.1:99999", "http://:{}@[::1"]
)
def test_a_password_in_the_endpoint_stays_secret(invoke: Invoke, tmp_path: Path, endpoint: str) -> None:
    """An endpoint that cannot be used is named without its user and password."""
    done = invoke(
        "cp", "--json", "--retry", "attempts=1", "--endpoint", endpoint.format(SECRET), "--anonymous", "gs://demo/a",
        str(tmp_path),
    )  # fmt: skip
    assert done.exit_code
    assert "error: " in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_a_recorded_request_cannot_command_the_terminal(invoke: Invoke, tmp_path: Path) -> None:
    """A HAR file comes from anywhere."""
    recorded = tmp_path / "evil.har"
    urls = ["http://h\u202e\x9b2J.example/a\u202e", "http://user:pw@h/a?sig=" + SECRET]
    requests = [{"request": {"method": "GET", "url": url}, "response": {"status": 200}} for url in urls]
    recorded.write_text(json.dumps({"log": {"entries": requests}}))
    done = invoke("explain", str(recorded))
    assert done.exit_code == 0, done.stderr
    assert not any(character in done.stdout for character in OBEYED)
    assert SECRET not in done.stdout
    recorded.write_text(json.dumps({"log": {"entries": [{"request": {"method": "GET", "url": f"http://{EVIL}"}}]}}))
    done = invoke("explain", str(recorded))
    assert done.exit_code == 2
    assert not any(character in done.stderr for character in OBEYED)


def test_a_request_with_a_strange_host_cannot_command_the_terminal(invoke: Invoke) -> None:
    """Pasted text may come from anywhere, too."""
    done = invoke("explain", "GET", "http://h\u202e\x9b2J.example/a")
    assert "\\u202e\\x9b2j" in done.stdout
    assert not any(character in done.stdout for character in OBEYED)


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_a_new_manifest_is_for_its_owner_alone(invoke: Invoke, tmp_path: Path) -> None:
    """One that is there keeps its mode."""
    source, manifest = tmp_path / "a", tmp_path / "done.csv"
    source.write_text("a")
    before = os.umask(0)
    try:
        for mode in (0o600, 0o644):
            assert invoke("cp", "--embedded", "--manifest", str(manifest), str(source), "gs://demo/a").exit_code == 0
            assert stat.S_IMODE(manifest.stat().st_mode) == mode
            manifest.chmod(0o644)
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.slack.com/services/T/B/secret",
        "https://hooks.slack.com/services/T/B:secret",
        "https://x.webhook.office.com/webhookb2/a/IncomingWebhook/b/secret",
        "https://api.telegram.org/bot123456:secret/send",
        "https://api.telegram.org/bot123456:" + "secret" * 6,
    ],
)
def test_explain_shows_no_secret_path(invoke: Invoke, url: str) -> None:
    """Neither in the request nor in the pattern that would vouch for it, in text and JSON."""
    for options in ((), ("--json",)):
        done = invoke("explain", "POST", url, *options)
        assert done.exit_code == 0
        assert "https://" in done.stdout
        assert "secret" not in done.output


@pytest.mark.parametrize("form", ["//me:{}@storage.test", "me:{}@storage.test", "http:/me:{}@h", "http:me:{}@h:1"])
def test_the_password_of_an_address_without_a_scheme(
    form: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option and variable for an address leaves it out of its error."""
    address = form.format(SECRET)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    for words in (
        ("ls", "gs://demo/"),
        ("ls", "gs://demo/", "--endpoint", address),
        ("curl", "--attempts", "1", address),
        ("explain", "GET", address),
        ("explain", "curl", address),
    ):
        done = invoke(*words)
        assert done.exit_code
        assert SECRET not in done.output, words
