"""Real clients work with the cloud: each runs a table of operations, and returns the expected values.

Clients that are not installed are installed into their own folders: `make soak` runs them.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from forbear_cloud import Cloud

pytestmark = pytest.mark.soak

HERE = Path(__file__).parent
LISTED = ["chunks", "combined", "empty", "large", "new", "once", "saved", "stream"]

GOOGLE: dict[str, object] = {
    "create a bucket": "EU",
    "upload a string": [None, "hello"],
    "upload empty": [None, ""],
    "upload under a condition": "PreconditionFailed",
    "upload in chunks": True,
    "write a file": True,
    "upload in parallel": True,
    "download a range": "ell",
    "not found": "NotFound",
    "metadata": 2,
    "copy": "dir/copy",
    "rewrite": [1, True],
    "compose": [None, "hellohello"],
    "rename": ["dir/renamed", False],
    "move": "dir/moved",
    "list": ["both", "chunks", "dir/moved"],
    "list one level": [True, ["dir/"]],
    "list by glob": ["dir/moved"],
    "batch": ["batch/z"],
    "a key": [None, "secret", "BadRequest", "BadRequest"],
    "another key": [None, "secret"],
    "a hold": ["Forbidden", "none"],
    "a retention policy": ["Forbidden", True, "none"],
    "soft delete": [["soft"], "soft"],
    "grant": 1,
    "an HMAC key": ["INACTIVE", "str"],
    "a notification": [None, True, None],
    "versions": 2,
    "delete under a condition": "PreconditionFailed",
    "delete all": [None, None, None],
}
NODEJS: dict[str, object] = {
    "create a bucket": "nodejs",
    "save": "hello",
    "save a large one": True,
    "save at once": "hello",
    "save a stream": True,
    "save in chunks": True,
    "save empty": "",
    "save under a condition": [412, "done"],
    "download a range": "ell",
    "metadata": ["v", "no-store", "2"],
    "exists": [True, False],
    "copy": "hello",
    "rename": [False, "hello"],
    "move": "hello",
    "combine": "hellohello",
    "list": [LISTED, ["dir/"]],
    "list in pages": 9,
    "a key": ["secret", 400],
    "a key in a session": [True, 400],
    "a hold": [403, "done"],
    "access": 1,
    "keys": True,
    "labels": "b",
    "soft delete": "hello",
    "delete under a condition": [412, "done"],
    "delete all": False,
}
RCLONE: dict[str, object] = {
    "create a bucket": "",
    "list the buckets": "rclone/\n",
    "upload": "",
    "upload an empty file": "",
    "upload and download a large file": True,
    "upload what is piped": "",
    "upload much that is piped": "",
    "read": "hello",
    "read a part": "ell",
    "copy a folder": "",
    "list": ["a", "sub/b", "sub/deep/c"],
    "list one level": ["empty", "large", "much", "piped", "small", "tree/"],
    "compare": "",
    "sync": ["", "a", "sub/deep/c"],
    "hash": ["5d41402abc4b2a76b9719d911017c592", "small"],
    "copy in the cloud": "",
    "move in the cloud": "",
    "touch": "",
    "read the time": "2026-01-31 12:00:00;moved\n",
    "size": 2,
    "delete a file": "",
    "purge a folder": "",
    "delete all": "",
    "list what is left": "",
}
GSUTIL: dict[str, object] = {
    "make a bucket": "",
    "list the buckets": "gs://gsutil/\n",
    "upload": "",
    "upload without overwriting": "",
    "upload under a condition": "failed: 1",
    "upload and download a large file": True,
    "upload what is piped": "",
    "read": "hello",
    "read a part": "ell",
    "copy a folder": ["", "gs://gsutil/tree/a", "gs://gsutil/tree/sub/b", "gs://gsutil/tree/sub/deep/c"],
    "sync": ["", "gs://gsutil/tree/a", "gs://gsutil/tree/sub/deep/c"],
    "list one level": ["gs://gsutil/large", "gs://gsutil/piped", "gs://gsutil/small", "gs://gsutil/tree/"],
    "describe": True,
    "size": "17",
    "copy in the cloud": "",
    "move in the cloud": "",
    "compose": "hellohello",
    "set metadata": "",
    "set a label": "{",
    "keep versions": "",
    "list versions": 3,
    "a key": ["", "secret", "failed: 1"],
    "a hold": ["", "failed: 1", ""],
    "grant": "True",
    "delete": "",
    "delete all": "",
    "list what is left": "",
}
GCSFS: dict[str, object] = {
    "make a bucket": None,
    "list the buckets": ["gcsfs/"],
    "pipe": 1,
    "cat": "hello",
    "cat a part": "ell",
    "write": True,
    "write in blocks": True,
    "write nothing": True,
    "put and get": True,
    "put a folder": ["gcsfs/tree/sub/y", "gcsfs/tree/x"],
    "read here and there": ["404142", "fdfeff"],
    "list": ["gcsfs/a", "gcsfs/blocks", "gcsfs/nothing", "gcsfs/small", "gcsfs/tree", "gcsfs/written"],
    "glob": ["gcsfs/tree/sub", "gcsfs/tree/x"],
    "walk": [["x"], ["y"]],
    "info": ["gcsfs/small", 5, "file"],
    "exists": [True, False],
    "copy": [None, "hello"],
    "move": [None, False],
    "merge": [None, "hellohello"],
    "set metadata": [{"k": "v"}, "v"],
    "exclusive": "FileExistsError",
    "not found": "FileNotFoundError",
    "delete": None,
    "delete many": [None, False],
    "delete all": [None, False],
}
OBSTORE: dict[str, object] = {
    "put": [None, "hello"],
    "put nothing": [None, ""],
    "put in parts": [None, True],
    "put with attributes": [
        None,
        [
            ["Cache-Control", "no-cache, no-store, max-age=0, must-revalidate"],
            ["Content-Type", "text/plain"],
            ["k", "v"],
        ],
    ],
    "create": [None, "AlreadyExistsError"],
    "update": [None, "PreconditionError"],
    "write": True,
    "stream": True,
    "get a range": "ell",
    "get ranges": ["he", "lo"],
    "get a suffix": "lo",
    "get if changed": "NotModifiedError",
    "get if the same": "PreconditionError",
    "head": ["small", 5],
    "not found": "FileNotFoundError",
    "copy": [None, "hello"],
    "copy over": "AlreadyExistsError",
    "rename": [None, ["dir/moved"]],
    "list": ["dir/moved", "large", "new", "nothing", "opened", "small", "typed"],
    "list one level": [["large", "new", "nothing", "opened", "small", "typed"], ["dir"]],
    "odd names": [None, "x", ["ä b/%2F?#+&="]],
    "delete": [None, "FileNotFoundError"],
    "delete many": [None, []],
}
GCLOUD: dict[str, object] = {
    "make a bucket": "",
    "upload": "",
    "upload and download a large file": True,
    "read": "hello",
    "copy a folder": ["", "gs://gcloud/tree/a", "gs://gcloud/tree/sub/b"],
    "describe": "5\n",
    "set metadata": "",
    "copy in the cloud": "",
    "move in the cloud": "hello",
    "compose": "hellohello",
    "sync": "",
    "a key": ["", "secret"],
    "list": [f"gs://gcloud/{name}" for name in ("both", "large", "moved", "secret", "small", "synced/", "tree/")],
    "hash": "mnG7TA==\n",
    "a hold": ["", "failed: 1", ""],
    "make a bucket with folders": "",
    "make a folder": "",
    "upload into a folder": "",
    "move a folder": "",
    "list folders": ["gs://gcloud-tree/a/c/small"],
    "make a managed folder": "",
    "delete": "",
    "delete all": "",
}


def program(name: str, cure: str) -> str:
    """Return the path of a program, or skip the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {cure}")
    return found


def installed(package: str, folder: Path) -> dict[str, str]:
    """Install a package and its dependencies; return the environment to run it in."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder))
    done = subprocess.run([*pip, package], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {"PYTHONPATH": str(folder)}


def check(cloud: Cloud, expected: Mapping[str, object], *line: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Run a table of operations, and compare what each returned; the cloud itself must not fail."""
    environment = {**os.environ, **env}
    done = subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected
    assert len(expected) >= 15
    assert [request for request in cloud.requests if request.status in {None, 500, 501}] == []


def test_google_cloud_storage(cloud: Cloud, tmp_path: Path) -> None:
    """Google's own library for Python works."""
    check(cloud, GOOGLE, sys.executable, str(HERE / "google.py"), cloud.url, str(tmp_path), cwd=tmp_path, env={})


def test_nodejs(cloud: Cloud, tmp_path: Path) -> None:
    """Google's own package for Node.js works; its default save() sends a chunk without an end."""
    npm, node = (program(name, "install Node.js with npm") for name in ("npm", "node"))
    install = [npm, "install", "--no-audit", "--no-fund", "@google-cloud/storage@7"]
    subprocess.run(install, cwd=tmp_path, capture_output=True, timeout=600, check=True)
    shutil.copy(HERE / "nodejs.js", tmp_path)
    check(cloud, NODEJS, node, "nodejs.js", cwd=tmp_path, env={"CLOUD": cloud.url})


def test_rclone(cloud: Cloud, tmp_path: Path) -> None:
    """rclone works; it is written in Go, and sends null for missing metadata."""
    rclone = program("rclone", "apt install rclone")
    cloud.store.delete_bucket(cloud.store.bucket("bkt"))
    check(
        cloud, RCLONE, sys.executable, str(HERE / "rclone.py"), rclone, cloud.url, str(tmp_path), cwd=tmp_path, env={}
    )


def test_gcloud(cloud: Cloud, tmp_path: Path) -> None:
    """`gcloud storage` works; it reads the layout of a bucket before it moves objects."""
    gcloud = program("gcloud", "install the Google Cloud CLI")
    check(
        cloud, GCLOUD, sys.executable, str(HERE / "gcloud.py"), gcloud, cloud.url, str(tmp_path), cwd=tmp_path, env={}
    )


def test_gsutil(cloud: Cloud, tmp_path: Path) -> None:
    """gsutil, Google's older command line, works."""
    env = installed("gsutil", tmp_path / "packages")
    cloud.store.delete_bucket(cloud.store.bucket("bkt"))
    check(cloud, GSUTIL, sys.executable, str(HERE / "gsutil.py"), cloud.url, str(tmp_path), cwd=tmp_path, env=env)


def test_gcsfs(cloud: Cloud, tmp_path: Path) -> None:
    """gcsfs, a file system in Python, works."""
    env = installed("gcsfs", tmp_path / "packages")
    cloud.store.delete_bucket(cloud.store.bucket("bkt"))
    check(cloud, GCSFS, sys.executable, str(HERE / "gcsfs.py"), cloud.url, str(tmp_path), cwd=tmp_path, env=env)


def test_obstore(cloud: Cloud, tmp_path: Path) -> None:
    """obstore works; it is written in Rust, and uses the XML API."""
    env = installed("obstore", tmp_path / "packages")
    cloud.store.create_bucket("obstore")
    check(cloud, OBSTORE, sys.executable, str(HERE / "obstore.py"), cloud.url, cwd=tmp_path, env=env)
