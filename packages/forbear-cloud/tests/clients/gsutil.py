"""Run the operations of gsutil, each by its name, and print what each returned as JSON: `gsutil.py URL FOLDER`.

It needs the package gsutil.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

URL, FOLDER = urlsplit(sys.argv[1]), Path(sys.argv[2])
DATA = bytes(range(256)) * 40_000
KEY = base64.b64encode(b"k" * 32).decode()
# It has no option to go without TLS.
START = """
import sys, httplib2
httplib2.HTTPSConnectionWithTimeout.connect = httplib2.HTTPConnectionWithTimeout.connect
from gslib.__main__ import main
sys.argv[0] = "gsutil"
sys.exit(main())
"""
OPTIONS = [
    f"Credentials:gs_json_host={URL.hostname}",
    f"Credentials:gs_json_port={URL.port}",
    "GSUtil:default_project_id=p",
    f"GSUtil:state_dir={FOLDER}",
    "GSUtil:resumable_threshold=1048576",
    "GSUtil:check_hashes=if_fast_else_skip",
    "GSUtil:use_gcloud_storage=False",
    "Boto:num_retries=0",
]


def gsutil(*arguments: str, stdin: bytes | None = None) -> str:
    """Run a command; return its output, or its exit code and errors."""
    line = [sys.executable, "-c", START, "-q", *(part for option in OPTIONS for part in ("-o", option)), *arguments]
    environment = {**os.environ, "BOTO_CONFIG": os.devnull, "HOME": str(FOLDER)}
    done = subprocess.run(line, env=environment, input=stdin or b"", capture_output=True, check=False)
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
    back = str(FOLDER / "back")
    failed = gsutil("cp", local("large", DATA), "gs://gsutil/large") + gsutil("cp", "gs://gsutil/large", back)
    return failed or Path(back).read_bytes() == DATA


def tree() -> list[str]:
    """Copy a folder, all at once."""
    for name in ("a", "sub/b", "sub/deep/c"):
        local(f"tree/{name}", name.encode())
    failed = gsutil("-m", "cp", "-r", str(FOLDER / "tree"), "gs://gsutil/")
    return [failed, *gsutil("ls", "gs://gsutil/tree/**").split()]


def sync() -> list[str]:
    """Make the target equal to the source, after one file changed and one was deleted."""
    local("tree/a", b"changed")
    (FOLDER / "tree/sub/b").unlink()
    failed = gsutil("rsync", "-r", "-d", "-c", str(FOLDER / "tree"), "gs://gsutil/tree")
    return [failed, *gsutil("ls", "gs://gsutil/tree/**").split()]


def versions() -> int:
    """Keep versions, write twice, and count them."""
    for _ in range(2):
        gsutil("cp", local("small", b"hello"), "gs://gsutil/small")
    return len(gsutil("ls", "-a", "gs://gsutil/small").split())


def with_a_key() -> list[str]:
    """Write and read with a key, and read without."""
    key = ("-o", f"GSUtil:encryption_key={KEY}")
    failed = gsutil(*key, "cp", local("secret", b"secret"), "gs://gsutil/secret")
    return [
        failed,
        gsutil("-o", f"GSUtil:decryption_key1={KEY}", "cat", "gs://gsutil/secret"),
        gsutil("cat", "gs://gsutil/secret")[:9],
    ]


def hold() -> list[str]:
    """Set a hold, try to delete, release it."""
    set_ = gsutil("retention", "temp", "set", "gs://gsutil/piped")
    refused = gsutil("rm", "gs://gsutil/piped")[:9]
    return [set_, refused, gsutil("retention", "temp", "release", "gs://gsutil/piped")]


OPERATIONS: dict[str, Callable[[], object]] = {
    "make a bucket": lambda: gsutil("mb", "gs://gsutil"),
    "list the buckets": lambda: gsutil("ls"),
    "upload": lambda: gsutil("cp", local("small", b"hello"), "gs://gsutil/small"),
    "upload without overwriting": lambda: gsutil("cp", "-n", local("small", b"other"), "gs://gsutil/small"),
    "upload under a condition": lambda: gsutil(
        "-h", "x-goog-if-generation-match:0", "cp", local("s", b"x"), "gs://gsutil/small"
    )[:9],
    "upload and download a large file": round_trip,
    "upload what is piped": lambda: gsutil("cp", "-", "gs://gsutil/piped", stdin=b"piped"),
    "read": lambda: gsutil("cat", "gs://gsutil/small"),
    "read a part": lambda: gsutil("cat", "-r", "1-3", "gs://gsutil/small"),
    "copy a folder": tree,
    "sync": sync,
    "list one level": lambda: gsutil("ls", "gs://gsutil").split(),
    "describe": lambda: "XUFAKrxLKna5cZ2REBfFkg==" in gsutil("ls", "-L", "gs://gsutil/small"),
    "size": lambda: gsutil("du", "-s", "gs://gsutil/tree").split()[0],
    "copy in the cloud": lambda: gsutil("cp", "gs://gsutil/small", "gs://gsutil/copied"),
    "move in the cloud": lambda: gsutil("mv", "gs://gsutil/copied", "gs://gsutil/moved"),
    "compose": lambda: (
        gsutil("compose", "gs://gsutil/small", "gs://gsutil/moved", "gs://gsutil/both")
        + gsutil("cat", "gs://gsutil/both")
    ),
    "set metadata": lambda: gsutil("setmeta", "-h", "x-goog-meta-k:v", "gs://gsutil/small"),
    "set a label": lambda: (
        gsutil("label", "ch", "-l", "a:b", "gs://gsutil") + gsutil("label", "get", "gs://gsutil").strip()[:1]
    ),
    "keep versions": lambda: gsutil("versioning", "set", "on", "gs://gsutil"),
    "list versions": versions,
    "a key": with_a_key,
    "a hold": hold,
    "grant": lambda: (
        gsutil("iam", "ch", "user:a@example.com:objectViewer", "gs://gsutil")
        + str("objectViewer" in gsutil("iam", "get", "gs://gsutil"))
    ),
    "delete": lambda: gsutil("rm", "gs://gsutil/moved"),
    "delete all": lambda: gsutil("rm", "-r", "gs://gsutil"),
    "list what is left": lambda: gsutil("ls"),
}

json.dump({name: operation() for name, operation in OPERATIONS.items()}, sys.stdout)
