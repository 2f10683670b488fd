"""`forbear explain` of recorded traffic: what is worst comes first, and no file is trusted."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear.cli.explain import listings
from forbear_testkit.cli.running import Invoke

STORAGE = "https://storage.googleapis.com"
UPLOAD = f"{STORAGE}/upload/storage/v1/b/b/o?uploadType=media&name=a"


def entry(method: str, url: str, status: int | None = 200, body: Any = None, reply: str = "", **headers: str) -> Any:
    """One entry; `body` is text, bytes (sent as base64) or None (nothing recorded)."""
    request: dict[str, Any] = {"method": method, "url": url, "bodySize": 0 if body is None else len(body)}
    request["headers"] = [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]
    if isinstance(body, bytes):
        request["postData"] = {"mimeType": "", "encoding": "base64", "text": base64.b64encode(body).decode()}
    elif body is not None:
        request["postData"] = {"mimeType": "application/json", "text": body}
    response: dict[str, Any] = {"status": status, "headers": [], "content": {"text": reply}}
    return {"request": request} if status is None else {"request": request, "response": response}


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    """Save entries as a HAR file."""

    def save(*entries: Any) -> str:
        path = tmp_path / "recorded.har"
        path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), encoding="utf-8")
        return str(path)

    return save


def explained(invoke: Invoke, name: str, *args: str) -> Any:
    """Return the JSON that `forbear explain --json` prints about a file."""
    done = invoke("explain", "--json", "--har", name, *args)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_worst_comes_first(invoke: Invoke, saved: Any) -> None:
    """Failures of what must not be repeated, unknown outcomes first; then missing conditions; then the rest."""
    name = saved(
        entry("GET", f"{STORAGE}/storage/v1/b/b/o/a", 503),
        entry("POST", "https://api.example.com/pay"),
        entry("DELETE", f"{STORAGE}/storage/v1/b/b/o/a"),
        entry("POST", f"{STORAGE}/storage/v1/b/b/notificationConfigs", 404),
        entry("POST", UPLOAD, 503, "x"),
        entry("POST", UPLOAD + "&ifGenerationMatch=0", 503, "x"),
        entry("POST", "https://api.example.com/pay", None),
        entry("POST", "https://api.example.com/pay", 0),
        entry("PUT", "https://api.example.com/pay", 500),
    )
    document = explained(invoke, name)
    assert [(one["entry"], one["group"]) for one in document["requests"]] == [
        (5, "failed"), (7, "failed"), (8, "failed"), (4, "failed"), (3, "unguarded"), (2, "unrepeatable"),
        (1, "repeatable"), (6, "repeatable"), (9, "repeatable"),
    ]  # fmt: skip
    counts = {"requests": 9, "failed": 4, "unguarded": 1, "unrepeatable": 1, "repeatable": 3}
    assert document["counts"] == counts
    worst = document["requests"][0]
    assert (worst["service"], worst["operation"], worst["safety"]) == (
        "cloud_storage",
        "storage.objects.insert",
        "conditional",
    )
    assert (worst["conditions"], worst["repeatable"], worst["verdict"]) == (["ifGenerationMatch="], False, "transient")
    lines = invoke("explain", name).stdout.splitlines()
    assert lines[0].split() == ["status", "repeatable", "request", "operation", "and", "reason"]
    assert lines[1].split()[:3] == ["503", "no", "POST"]
    assert lines[1].endswith("storage.objects.insert: only with ifGenerationMatch=")
    assert [line.split()[0] for line in lines[1:10]] == [
        "503",
        "none",
        "none",
        "404",
        "200",
        "200",
        "503",
        "503",
        "500",
    ]
    assert lines[10:] == [
        "",
        "9 requests",
        "    4 failed or unknown, and must not be repeated",
        "    1 may be repeated only with a condition, which is missing",
        "    1 must not be repeated",
        "    3 may be repeated",
    ]


def test_a_request_has_one_line_however_long(invoke: Invoke, saved: Any) -> None:
    """No line is broken, so that lines can be counted and searched."""
    name = saved(entry("POST", f"https://api.example.com/{'a' * 500}"))
    assert invoke("explain", name).stdout.splitlines()[1].endswith(f"/{'a' * 500}   not known: a repeat could do harm")


@pytest.mark.parametrize("body", ['{"etag": "CAE="}', b'{"etag": "CAE="}'], ids=["text", "base64"])
def test_bodies_are_read(body: str | bytes, invoke: Invoke, saved: Any) -> None:
    """A condition in the body counts, be the body recorded as text or as base64."""
    name = saved(entry("PUT", f"{STORAGE}/storage/v1/b/b/iam", 412, body))
    (only,) = explained(invoke, name)["requests"]
    assert (only["met"], only["repeatable"], only["verdict"]) == ("etag in the body", True, "permanent")


def test_what_a_body_lacks_makes_nothing_safe(invoke: Invoke, saved: Any) -> None:
    """A body that is broken or was not recorded counts as unknown."""
    broken = entry("PUT", f"{STORAGE}/storage/v1/b/b/iam", 200, '{"etag": "CAE="}')
    broken["request"]["postData"]["encoding"] = "base64"
    unknown = entry("PUT", f"{UPLOAD}&upload_id=x", 503, Content_Range="bytes */9")
    del unknown["request"]["bodySize"]
    status = entry("PUT", f"{UPLOAD}&upload_id=x", 503, Content_Range="bytes */9")
    found = {one["entry"]: one for one in explained(invoke, saved(broken, unknown, status))["requests"]}
    assert [found[number]["repeatable"] for number in (1, 2, 3)] == [False, False, True]
    assert found[2]["why"] == "part of an upload: query the session, and send the rest"


def test_headers_and_responses_are_read(invoke: Invoke, saved: Any) -> None:
    """Headers count in any case, those of HTTP/2 for the request line do not; the body of a 409 tells a conflict."""
    guarded = entry("PUT", f"{STORAGE}/bkt/a", X_Goog_If_Generation_Match="0")
    guarded["request"]["headers"] += [{"name": ":authority", "value": "x"}, {"name": 7}, "junk"]
    stale = entry(
        "POST",
        "https://iam.googleapis.com/v1/projects/p/roles/r:undelete",
        409,
        reply='{"error": {"status": "ABORTED"}}',
    )
    found = {one["entry"]: one for one in explained(invoke, saved(guarded, stale))["requests"]}
    assert (found[1]["operation"], found[1]["met"]) == ("xml.object.put", "x-goog-if-generation-match:")
    assert (found[2]["service"], found[2]["verdict"]) == ("iam", "conflict")


def test_what_is_no_http_is_left_out(invoke: Invoke, saved: Any) -> None:
    """Browsers record data and sockets, too; nothing is said of these but their number."""
    name = saved(entry("GET", "data:text/plain,x"), entry("GET", "wss://host/"), entry("GET", "https://host/"))
    done = invoke("explain", name)
    assert done.stderr == "ignored: 2 entries that are not HTTP requests\n"
    assert "1 request\n" in done.stdout
    assert invoke("explain", saved()).stdout.startswith("0 requests\n")


def test_a_method_that_was_sent_is_no_slip(invoke: Invoke, saved: Any) -> None:
    """A server may have a method that is similar to a usual one: the others are judged all the same."""
    requests = explained(invoke, saved(entry("TRACK", "https://h.test/x"), entry("GET", "https://h.test/x")))[
        "requests"
    ]
    assert [(one["request"]["method"], one["repeatable"]) for one in requests] == [("TRACK", False), ("GET", True)]


def test_profile_and_service_hold_for_all(invoke: Invoke, saved: Any) -> None:
    """`--profile` and `--service` go with a file as they do with a request."""
    name = saved(entry("PATCH", "http://127.0.0.1:4443/storage/v1/b/b", 503, "{}", If_Match='"7"'))
    assert explained(invoke, name)["requests"][0]["service"] == "rfc9110"
    (only,) = explained(invoke, name, "--service", "cloud_storage", "--profile", "documented")["requests"]
    assert (only["operation"], only["repeatable"]) == ("storage.buckets.patch", True)


def test_from_stdin(saved: Any) -> None:
    """`-` is stdin, and a byte order mark does no harm."""
    content = b"\xef\xbb\xbf" + Path(saved(entry("GET", "https://host/"))).read_bytes()
    done = CliRunner().invoke(app, ["explain", "--har", "-"], input=content, catch_exceptions=False)
    assert (done.exit_code, done.stdout.splitlines()[2]) == (0, "")


def test_no_secret_is_repeated(invoke: Invoke, saved: Any) -> None:
    """No query, header, body or password of a recorded request is printed."""
    url = "https://me:SECRET@storage.googleapis.com/upload/storage/v1/b/b/o?upload_id=SECRET&X-Goog-Signature=SECRET"
    name = saved(entry("PUT", url, 503, "SECRET", "SECRET", Authorization="SECRET", Cookie="SECRET"))
    for form in ((), ("--json",)):
        done = invoke("explain", "--har", name, *form)
        assert done.exit_code == 0
        assert "SECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "is not a HAR file: it is not JSON\n"),
        ("{", "is not a HAR file: it is not JSON\n"),
        ("[" * 100_000, "is not a HAR file: it is not JSON\n"),
        ("\xff", "is not a HAR file: it is not JSON\n"),
        ("[]", "is not a HAR file: it has no list log.entries\n"),
        ('{"log": 1}', "is not a HAR file: it has no list log.entries\n"),
        ('{"log": {"entries": {}}}', "is not a HAR file: it has no list log.entries\n"),
        ('{"log": {"entries": [null]}}', ", entry 1: it has no request with a method and a url\n"),
        (
            '{"log": {"entries": [{"request": {"method": "GET"}}]}}',
            ", entry 1: it has no request with a method and a url\n",
        ),
        (
            '{"log": {"entries": [{"request": {"method": "G T", "url": "https://h/"}}]}}',
            ", entry 1: the method must be an HTTP method such as GET or PATCH\n",
        ),
        (
            '{"log": {"entries": [{"request": {"method": "GET", "url": "https://h:x/?SECRET"}}]}}',
            ", entry 1: this is not a URL: https://h:x/\n",
        ),
    ],
    ids=range(11),
)
def test_broken_files(content: str, text: str, tmp_path: Path, invoke: Invoke) -> None:
    """A file that is not a HAR file, or has a broken entry, is refused in words that say where."""
    path = tmp_path / "broken.har"
    path.write_bytes(content.encode("latin-1"))
    done = invoke("explain", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert "\nhint: " in done.stderr
    assert "SECRET" not in done.stderr


def test_files_that_cannot_be_read(invoke: Invoke, saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing, a huge and a second file are refused."""
    name = saved(entry("GET", "https://host/"))
    for args, text in (
        (("no/such.har",), "error: cannot read no/such.har: No such file or directory\n"),
        (("--har", str(tmp_path)), ": Is a directory\n"),
        (("--har", "\0"), ": embedded null byte\n"),
        (("--har", name, name), "error: a HAR file comes alone, got 2 words\n"),
        (("--har", name, "-H", "A: b"), "error: `--header` does not go with a HAR file\n"),
    ):
        done = invoke("explain", *args)
        assert (done.exit_code, done.stdout) == (2, "")
        assert text in done.stderr
    monkeypatch.setattr(listings, "MAX_SIZE", 64)
    done = invoke("explain", name)
    assert done.exit_code == 2
    assert "is larger than 0 MiB\nhint: save fewer requests" in done.stderr
