"""Failures in the output of `cp --json` and `rsync --json` have all that a support case needs."""

import json
from pathlib import Path
from typing import Any

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke

HEADERS = {"X-GUploader-UploadID": "ABP-1", "X-Goog-Request-Id": "req-1"}
IDS = {"x-guploader-uploadid": "ABP-1", "x-goog-request-id": "req-1"}
INSERT = "/upload/storage/v1/b/bkt/o"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with two files, and a cloud that the environment names."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number in (1, 2):
        (tmp_path / "photos" / f"{number}.jpg").write_text(f"photo {number}")


@pytest.mark.parametrize(
    ("command", "operation", "method", "resource"),
    [
        (("cp", "photos/1.jpg", "gs://bkt/x"), "storage.objects.insert", "POST", INSERT),
        (("cp", "gs://bkt/a", "here"), "storage.objects.get", "GET", "/storage/v1/b/bkt/o/a"),
        (("rsync", "-r", "photos", "gs://bkt/photos"), "storage.objects.insert", "POST", INSERT),
    ],
    ids=["upload", "download", "rsync"],
)
def test_json_has_the_request_and_each_attempt(
    invoke: Invoke, cloud: Cloud, command: tuple[str, ...], operation: str, method: str, resource: str
) -> None:
    """The request, and each attempt with its time, status and ids."""
    invoke("cp", "photos/2.jpg", "gs://bkt/a")
    cloud.fault(Fault.status(503, operation=operation, times=9, headers=HEADERS))
    with virtual_time():
        done = invoke(command[0], "--json", "--parallel", "1", "--retry", "attempts=2", *command[1:])
    assert done.exit_code == 1
    tried: dict[str, Any] = json.loads(done.stdout.splitlines()[0])["tried"]
    assert tried["method"] == method
    assert tried["resource"].removeprefix(cloud.url) == resource
    assert [attempt["status"] for attempt in tried["attempts"]] == [503, 503]
    assert [attempt["request_ids"] for attempt in tried["attempts"]] == [IDS, IDS]
    assert all(attempt["time"].endswith("Z") for attempt in tried["attempts"])
