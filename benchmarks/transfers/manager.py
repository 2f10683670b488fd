"""google-cloud-storage's transfer_manager: several processes, and parts of the large file."""

import os
from collections.abc import Sequence
from typing import Any

from google.cloud.storage import transfer_manager

from benchmarks.transfers import google, measured
from benchmarks.transfers.task import Outcome, Task

version = google.version
_manager: Any = transfer_manager


def run(task: Task) -> Outcome:
    return measured.call(lambda: _transfer(task))


def _transfer(task: Task) -> list[object]:
    bucket, workers = google.bucket(task), os.cpu_count()
    if task.large:
        [name] = task.names
        blob = bucket.blob(task.object(name))
        if task.up:
            _manager.upload_chunks_concurrently(os.fspath(task.file(name)), blob, max_workers=workers)
        else:
            _manager.download_chunks_concurrently(blob, os.fspath(task.file(name)), max_workers=workers)
        return []
    results: Sequence[object]
    if task.up:
        results = _manager.upload_many_from_filenames(
            bucket, task.names, source_directory=task.folder, blob_name_prefix=task.prefix, max_workers=workers
        )
    else:
        results = _manager.download_many_to_path(
            bucket, task.names, destination_directory=task.folder, blob_name_prefix=task.prefix, max_workers=workers
        )
    return [result for result in results if isinstance(result, Exception)]
