"""`forbear curl` before curl command lines as Google's documentation has them, against the embedded cloud over TLS."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke
from forbear_testkit.cli.tls_front import tls_front

TOKEN = '-H "Authorization: Bearer SECRETTOKEN"'
JSON = '-H "Content-Type: application/json"'
TEXT = '-H "Content-Type: text/plain"'
NEW = '-H "x-goog-if-generation-match: 0"'
HOST = "https://storage.googleapis.com"
BUCKET = f"{HOST}/storage/v1/b/bkt"
UPLOAD = f"{HOST}/upload/storage/v1/b/bkt/o"
ACCOUNTS = "https://iam.googleapis.com/v1/projects/my-project/serviceAccounts"
ACCOUNT = f"{ACCOUNTS}/sa-one@my-project.iam.gserviceaccount.com"

PASTED = [
    # Cloud Storage, JSON API
    (f'curl -X GET {TOKEN} "{HOST}/storage/v1/b?project=my-project"', 200, 2),
    (f'curl -X POST --data-binary @bucket.json {TOKEN} {JSON} "{HOST}/storage/v1/b?project=my-project"', 200, 2),
    (f'curl -X GET {TOKEN} "{BUCKET}/o"', 200, 2),
    (f'curl {TOKEN} "{BUCKET}/o/a%20b?alt=media"', 200, 2),
    (f'curl -X GET {TOKEN} -o "saved" "{BUCKET}/o/a%20b?alt=media"', 200, 2),
    (f'curl -X POST --data-binary @object {TOKEN} {TEXT} "{UPLOAD}?uploadType=media&name=new"', 503, 1),
    (f'curl --data-binary @object {TOKEN} {TEXT} "{UPLOAD}?uploadType=media&name=n&ifGenerationMatch=0"', 200, 2),
    (f'curl -i -X POST --data-binary @object.json {TOKEN} {JSON} "{UPLOAD}?uploadType=resumable&name=new"', 200, 2),
    (f'curl -X PATCH --data-binary @bucket.json {TOKEN} {JSON} "{BUCKET}?fields=labels"', 503, 1),
    (f'curl -X PATCH -d @bucket.json {TOKEN} {JSON} "{BUCKET}?fields=labels&ifMetagenerationMatch=1"', 200, 2),
    (f'curl -X POST {TOKEN} -H "Content-Length: 0" "{BUCKET}/o/a%20b/rewriteTo/b/bkt/o/copy"', 503, 1),
    (f'curl -X DELETE {TOKEN} "{BUCKET}/o/a%20b"', 503, 1),
    (f'curl -X DELETE {TOKEN} "{BUCKET}/o/a%20b?ifMetagenerationMatch=1"', 503, 1),
    (f'curl {TOKEN} "{BUCKET}/iam"', 200, 2),
    (f'curl -X PUT --data-binary @policy.json {TOKEN} {JSON} "{BUCKET}/iam"', 503, 1),
    # Cloud Storage, XML API
    (f'curl -X GET {TOKEN} "{HOST}/bkt?list-type=2"', 200, 2),
    (f'curl -X PUT --data-binary @object {TOKEN} {TEXT} "{HOST}/bkt/new"', 503, 1),
    (f'curl -X PUT --data-binary @object {TOKEN} {TEXT} {NEW} "{HOST}/bkt/new"', 200, 2),
    (f'curl {TOKEN} -T object "{HOST}/bkt/" {NEW}', 200, 2),
    (f'curl -I {TOKEN} "{HOST}/bkt/a%20b"', 200, 2),
    (f'curl -X DELETE {TOKEN} "{HOST}/bkt/a%20b"', 503, 1),
    # IAM
    (f'curl -X GET {TOKEN} "{ACCOUNTS}"', 200, 2),
    (f'curl -X POST {TOKEN} -H "Content-Type: application/json; charset=utf-8" -d @account.json "{ACCOUNTS}"', 200, 2),
    (f'curl -X POST {TOKEN} {JSON} -d "" "{ACCOUNT}:getIamPolicy"', 200, 2),
    (f"curl -X POST {TOKEN} {JSON} -d '{{\"policy\": {{\"bindings\": []}}}}' \"{ACCOUNT}:setIamPolicy\"", 503, 1),
    (f'curl -X POST {TOKEN} {JSON} -d @permissions.json "{ACCOUNT}:testIamPermissions"', 200, 2),
]  # fmt: skip
"""A line, the status of the last response, and the attempts, if the server responds to the first one with 503."""

FILES = {
    "account.json": {"accountId": "new-account", "serviceAccount": {"displayName": "New"}},
    "bucket.json": {"name": "new-bucket", "labels": {"a": "b"}},
    "object.json": {"contentType": "text/plain"},
    "permissions.json": {"permissions": ["iam.serviceAccounts.get"]},
    "policy.json": {"bindings": []},
}


@pytest.fixture(scope="module")
def google(running_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The options by which requests for Google's hosts reach the embedded cloud."""
    with tls_front(running_cloud.url, tmp_path_factory.mktemp("tls") / "server.pem") as options:
        yield options


def requests_of(stderr: str) -> list[dict[str, Any]]:
    """Return the requests of the report in JSON, which is the last line."""
    requests: list[dict[str, Any]] = json.loads(stderr.splitlines()[-1])["requests"]
    return requests


@pytest.mark.parametrize(("line", "status", "attempts"), PASTED, ids=[line.replace(TOKEN, "") for line, _, _ in PASTED])
def test_a_pasted_line(
    line: str,
    status: int,
    attempts: int,
    invoke: Invoke,
    cloud: Cloud,
    google: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is sent as curl would send it, and again after a 503 only where that is safe; no secret is printed."""
    monkeypatch.chdir(tmp_path)
    cloud.store.put("bkt", "a b", b"content")
    httpx.post(f"{cloud.url}{ACCOUNTS.partition('.com')[2]}", json={"accountId": "sa-one"}).raise_for_status()
    for name, content in FILES.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "object").write_bytes(b"content\n")
    cloud.fault(Fault.status(503))
    done = invoke("curl", *shlex.split(line)[1:], *google, "--constant", "0", "--report", "json")
    (request,) = requests_of(done.stderr)
    assert (done.exit_code, request["status"], request["attempts"]) == (0, status, attempts)
    assert all(seen.authorized for seen in list(cloud.requests)[-attempts:])
    assert "SECRETTOKEN" not in done.stderr
    if " -o " in line:
        assert ((tmp_path / "saved").read_bytes(), done.stdout) == (b"content", "")


def test_an_upload_session_is_continued_by_pasted_lines(
    invoke: Invoke, cloud: Cloud, google: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of the page on resumable uploads start a session, upload in it, and ask it how far it is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "object").write_bytes(b"content\n")
    start = ("-i", "-X", "POST", "-H", "Content-Length: 0", f"{UPLOAD}?uploadType=resumable&name=new")
    headers = invoke("curl", *start, *google).stdout.splitlines()
    session = next(line[10:] for line in headers if line.lower().startswith("location: "))
    session = HOST + session[session.index("/upload/") :]
    state = invoke("curl", "-i", "-X", "PUT", "-H", "Content-Range: bytes */8", "-d", "", session, *google)
    assert "308" in state.stdout.splitlines()[0]
    cloud.fault(Fault.status(503))
    sent = invoke("curl", "-X", "PUT", "--data-binary", "@object", session, *google, "--constant", "0")
    assert sent.exit_code == 0
    assert bytes(cloud.store.object("bkt", "new").content) == b"content\n"
