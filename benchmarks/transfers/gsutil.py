"""gsutil, the command; `plain_gsutil` starts it."""

import sys
from importlib.metadata import version as installed
from urllib.parse import urlsplit

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

_GSUTIL = [sys.executable, "-m", "benchmarks.transfers.plain_gsutil"]


def version() -> str:
    return installed("gsutil")


def run(task: Task) -> Outcome:
    place = urlsplit(task.url)
    options = [
        f"Credentials:gs_json_host={place.hostname}",
        f"Credentials:gs_json_port={place.port}",
        "GSUtil:default_project_id=p",
    ]
    line = [*_GSUTIL, "-q", *(part for option in options for part in ("-o", option))]
    line += ["cp"] if task.large else ["-m", "cp"]
    files, objects = f"{task.folder}/*", f"gs://{BUCKET}/{task.prefix}"
    line += [files, objects] if task.up else [f"{objects}*", task.folder]
    return measured.command(line, [*_GSUTIL, "version"])
