"""Run the operations of rclone, each by its name, and print what each returned as JSON: `rclone.py PROGRAM URL FOLDER`.

It needs nothing but Python's own library.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROGRAM, URL, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DATA = bytes(range(256)) * 40_000
OPTIONS = {
    "RCLONE_CONFIG": str(FOLDER / "rclone.conf"),
    "RCLONE_CONFIG_CLOUD_TYPE": "google cloud storage",
    "RCLONE_CONFIG_CLOUD_ENDPOINT": f"{URL}/storage/v1/",
    "RCLONE_CONFIG_CLOUD_ANONYMOUS": "true",
    "RCLONE_CONFIG_CLOUD_PROJECT_NUMBER": "p",
    "RCLONE_CONFIG_CLOUD_BUCKET_POLICY_ONLY": "true",
    "RCLONE_RETRIES": "1",
    "RCLONE_LOW_LEVEL_RETRIES": "1",
}


def rclone(*arguments: str, stdin: bytes | None = None) -> str:
    """Run a command; return its output, or its exit code and errors."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RCLONE_")} | OPTIONS
    done = subprocess.run([PROGRAM, *arguments], env=environment, input=stdin, capture_output=True, check=False)
    if done.returncode:
        return f"failed: {done.returncode} {done.stderr.decode()[-300:]}"
    return done.stdout.decode()


def local(name: str, data: bytes) -> str:
    """A file on disk."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def round_trip() -> bool | str:
    """Copy a large file there and back."""
    failed = rclone("copyto", local("large", DATA), "cloud:rclone/large") + rclone(
        "copyto", "cloud:rclone/large", str(FOLDER / "back")
    )
    return failed or (FOLDER / "back").read_bytes() == DATA


def tree() -> str:
    """Copy a folder."""
    for name in ("a", "sub/b", "sub/deep/c"):
        local(f"tree/{name}", name.encode())
    return rclone("copy", str(FOLDER / "tree"), "cloud:rclone/tree")


def sync() -> list[str]:
    """Make the target equal to the source, after one file changed and one was deleted."""
    local("tree/a", b"changed")
    (FOLDER / "tree/sub/b").unlink()
    failed = rclone("sync", "--checksum", str(FOLDER / "tree"), "cloud:rclone/tree")
    return [failed, *listed("cloud:rclone/tree")]


def listed(place: str) -> list[str]:
    """Return the files below a path."""
    return sorted(rclone("lsf", "-R", "--files-only", place).split())


OPERATIONS: dict[str, Callable[[], object]] = {
    "create a bucket": lambda: rclone("mkdir", "cloud:rclone"),
    "list the buckets": lambda: rclone("lsf", "cloud:"),
    "upload": lambda: rclone("copyto", local("small", b"hello"), "cloud:rclone/small"),
    "upload an empty file": lambda: rclone("copyto", local("empty", b""), "cloud:rclone/empty"),
    "upload and download a large file": round_trip,
    "upload what is piped": lambda: rclone("rcat", "cloud:rclone/piped", stdin=b"piped"),
    "upload much that is piped": lambda: rclone("rcat", "cloud:rclone/much", stdin=DATA),
    "read": lambda: rclone("cat", "cloud:rclone/small"),
    "read a part": lambda: rclone("cat", "--offset", "1", "--count", "3", "cloud:rclone/small"),
    "copy a folder": tree,
    "list": lambda: listed("cloud:rclone/tree"),
    "list one level": lambda: sorted(rclone("lsf", "cloud:rclone").split()),
    "compare": lambda: rclone("check", str(FOLDER / "tree"), "cloud:rclone/tree"),
    "sync": sync,
    "hash": lambda: rclone("md5sum", "cloud:rclone/small").split(),
    "copy in the cloud": lambda: rclone("copyto", "cloud:rclone/small", "cloud:rclone/copied"),
    "move in the cloud": lambda: rclone("moveto", "cloud:rclone/copied", "cloud:rclone/moved"),
    "touch": lambda: rclone("touch", "-t", "2026-01-31T12:00:00", "cloud:rclone/moved"),
    "read the time": lambda: rclone("lsf", "--format", "tp", "cloud:rclone/moved"),
    "size": lambda: json.loads(rclone("size", "--json", "cloud:rclone/tree"))["count"],
    "delete a file": lambda: rclone("deletefile", "cloud:rclone/moved"),
    "purge a folder": lambda: rclone("purge", "cloud:rclone/tree"),
    "delete all": lambda: rclone("delete", "cloud:rclone") + rclone("rmdir", "cloud:rclone"),
    "list what is left": lambda: rclone("lsf", "cloud:"),
}

json.dump({name: operation() for name, operation in OPERATIONS.items()}, sys.stdout)
