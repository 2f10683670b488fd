"""Run the operations of `gcloud storage`, each by its name, and print what each returned as JSON.

Arguments: the program, the URL of the cloud and a folder. It needs nothing but Python's own library.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROGRAM, URL, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DATA = bytes(range(256)) * 40_000
KEY = base64.b64encode(b"k" * 32).decode()
ENVIRONMENT = {
    **os.environ,
    "HOME": str(FOLDER),
    "CLOUDSDK_CONFIG": str(FOLDER / "gcloud"),
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{URL}/storage/v1/",
    "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
    "CLOUDSDK_CORE_PROJECT": "p",
    "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
    "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
    "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
    "CLOUDSDK_STORAGE_MAX_RETRIES": "0",
    "CLOUDSDK_STORAGE_RESUMABLE_THRESHOLD": "1048576",
}


def storage(*arguments: str) -> str:
    """Run a command; return its output, or its exit code and errors."""
    line = [PROGRAM, "storage", *arguments, "--quiet", "--verbosity=error", "--no-user-output-enabled"]
    if arguments[0] in {"ls", "cat", "buckets", "objects", "hash", "du"}:
        line.pop()
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return f"failed: {done.returncode} {done.stderr[-400:]}" if done.returncode else done.stdout


def local(name: str, data: bytes) -> str:
    """A file on disk."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def round_trip() -> bool | str:
    """Copy a large file there and back."""
    back = str(FOLDER / "back")
    failed = storage("cp", local("large", DATA), "gs://gcloud/large") + storage("cp", "gs://gcloud/large", back)
    return failed or Path(back).read_bytes() == DATA


def tree() -> list[str]:
    """Copy a folder."""
    for name in ("a", "sub/b"):
        local(f"tree/{name}", name.encode())
    return [storage("cp", "-r", str(FOLDER / "tree"), "gs://gcloud/"), *storage("ls", "gs://gcloud/tree/**").split()]


OPERATIONS: dict[str, Callable[[], object]] = {
    "make a bucket": lambda: storage("buckets", "create", "gs://gcloud"),
    "upload": lambda: storage("cp", local("small", b"hello"), "gs://gcloud/small"),
    "upload and download a large file": round_trip,
    "read": lambda: storage("cat", "gs://gcloud/small"),
    "copy a folder": tree,
    "describe": lambda: storage("objects", "describe", "gs://gcloud/small", "--format=value(size)"),
    "set metadata": lambda: storage("objects", "update", "gs://gcloud/small", "--custom-metadata=k=v"),
    "copy in the cloud": lambda: storage("cp", "gs://gcloud/small", "gs://gcloud/copied"),
    "move in the cloud": lambda: (
        storage("mv", "gs://gcloud/copied", "gs://gcloud/moved") + storage("cat", "gs://gcloud/moved")
    ),
    "compose": lambda: (
        storage("objects", "compose", "gs://gcloud/small", "gs://gcloud/moved", "gs://gcloud/both")
        + storage("cat", "gs://gcloud/both")
    ),
    "sync": lambda: storage("rsync", "-r", str(FOLDER / "tree"), "gs://gcloud/synced"),
    "a key": lambda: [
        storage("cp", local("secret", b"secret"), "gs://gcloud/secret", f"--encryption-key={KEY}"),
        storage("cat", "gs://gcloud/secret", f"--decryption-keys={KEY}"),
    ],
    "list": lambda: storage("ls", "gs://gcloud").split(),
    "hash": lambda: storage("hash", "gs://gcloud/small", "--format=value(crc32c_hash)"),
    "a hold": lambda: [
        storage("objects", "update", "gs://gcloud/small", "--temporary-hold"),
        storage("rm", "gs://gcloud/small")[:9],
        storage("objects", "update", "gs://gcloud/small", "--no-temporary-hold"),
    ],
    "make a bucket with folders": lambda: storage(
        "buckets", "create", "gs://gcloud-tree", "--enable-hierarchical-namespace", "--uniform-bucket-level-access"
    ),
    "make a folder": lambda: storage("folders", "create", "gs://gcloud-tree/a/b/", "--recursive"),
    "upload into a folder": lambda: storage("cp", local("small", b"hello"), "gs://gcloud-tree/a/b/small"),
    "move a folder": lambda: storage("mv", "gs://gcloud-tree/a/b/", "gs://gcloud-tree/a/c/"),
    "list folders": lambda: storage("ls", "-r", "gs://gcloud-tree/**").split(),
    "make a managed folder": lambda: storage("managed-folders", "create", "gs://gcloud/managed/"),
    "delete": lambda: storage("rm", "gs://gcloud/moved"),
    "delete all": lambda: storage("rm", "-r", "gs://gcloud"),
}

json.dump({name: operation() for name, operation in OPERATIONS.items()}, sys.stdout)
