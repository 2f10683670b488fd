"""google-cloud-storage as most use it: one call for each file, one after the other."""

import os
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

_CHUNK = 1024 * 1024


def version() -> str:
    return installed("google-cloud-storage")


def run(task: Task) -> Outcome:
    def transfer() -> list[Exception]:
        home = bucket(task)
        failed: list[Exception] = []
        for name in task.names:
            blob: Any = home.blob(task.object(name), chunk_size=_CHUNK if task.large and task.up else None)
            work: Callable[[str], None] = blob.upload_from_filename if task.up else blob.download_to_filename
            try:
                work(os.fspath(task.file(name)))
            except Exception as error:
                failed.append(error)
        return failed

    return measured.call(transfer)


def bucket(task: Task) -> Any:
    """The bucket on the embedded cloud, without credentials."""
    os.environ["STORAGE_EMULATOR_HOST"] = task.url
    client: Any = storage.Client(project="p", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call]
    return client.bucket(BUCKET)
