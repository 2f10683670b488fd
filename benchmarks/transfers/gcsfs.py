"""gcsfs, through its blocking interface."""

import os
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

# It would ask Google's API for the type of the bucket, through gRPC with TLS, and wait a minute for the answer.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
_gcsfs: Any = import_module("gcsfs")


def version() -> str:
    return installed("gcsfs")


def run(task: Task) -> Outcome:
    def transfer() -> tuple[()]:
        system = _gcsfs.GCSFileSystem(token="anon", endpoint_url=task.url, project="p")
        files = [os.fspath(task.file(name)) for name in task.names]
        objects = [f"{BUCKET}/{task.object(name)}" for name in task.names]
        if task.up:
            system.put(files, objects)
        else:
            system.get(objects, files)
        return ()

    return measured.call(transfer)
