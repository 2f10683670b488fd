"""Run the operations of gcsfs, each by its name, and print what each returned as JSON: `gcsfs.py URL FOLDER`."""

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
DATA = bytes(range(256)) * 40_000
# Its folder, which has a file of its name, comes first otherwise.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
# It would ask Google's API for the type of the bucket, through gRPC with TLS, and wait a minute for the answer.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
gcsfs: Any = import_module("gcsfs")
fs: Any = gcsfs.GCSFileSystem(token="anon", endpoint_url=URL, project="p", use_listings_cache=False)


def failure(call: Callable[[], object]) -> str:
    """Return the name of the error."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


def written(name: str, data: bytes) -> bool:
    """Write through a file, and read it back."""
    with fs.open(name, "wb", block_size=262_144) as file:
        file.write(data)
    with fs.open(name, "rb", block_size=262_144) as file:
        return bool(file.read() == data)


def put_and_get() -> bool:
    """Copy a file there and back."""
    (FOLDER / "a").write_bytes(DATA)
    fs.put(str(FOLDER / "a"), "gcsfs/a")
    fs.get("gcsfs/a", str(FOLDER / "b"))
    return (FOLDER / "b").read_bytes() == DATA


def tree() -> list[str]:
    """Copy a folder."""
    for name in ("x", "sub/y"):
        path = FOLDER / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    fs.put(str(FOLDER / "tree"), "gcsfs/", recursive=True)
    return sorted(fs.find("gcsfs/tree"))


def random_access() -> list[str]:
    """Read at several positions."""
    with fs.open("gcsfs/a", "rb", block_size=65_536) as file:
        file.seek(1_000_000)
        first = file.read(3)
        file.seek(-3, 2)
        return [first.hex(), file.read().hex()]


OPERATIONS: dict[str, Callable[[], object]] = {
    "make a bucket": lambda: fs.mkdir("gcsfs"),
    "list the buckets": lambda: fs.ls(""),
    "pipe": lambda: len(fs.pipe("gcsfs/small", b"hello")),
    "cat": lambda: fs.cat("gcsfs/small").decode(),
    "cat a part": lambda: fs.cat_file("gcsfs/small", start=1, end=4).decode(),
    "write": lambda: written("gcsfs/written", b"hello"),
    "write in blocks": lambda: written("gcsfs/blocks", DATA),
    "write nothing": lambda: written("gcsfs/nothing", b""),
    "put and get": put_and_get,
    "put a folder": tree,
    "read here and there": random_access,
    "list": lambda: sorted(fs.ls("gcsfs")),
    "glob": lambda: fs.glob("gcsfs/tree/*"),
    "walk": lambda: [sorted(files) for _, _, files in fs.walk("gcsfs/tree")],
    "info": lambda: [fs.info("gcsfs/small")[name] for name in ("name", "size", "type")],
    "exists": lambda: [fs.exists("gcsfs/small"), fs.exists("gcsfs/nope")],
    "copy": lambda: [fs.cp_file("gcsfs/small", "gcsfs/copy"), fs.cat("gcsfs/copy").decode()],
    "move": lambda: [fs.mv("gcsfs/copy", "gcsfs/moved"), fs.exists("gcsfs/copy")],
    "merge": lambda: [fs.merge("gcsfs/both", ["gcsfs/small", "gcsfs/moved"]) and None, fs.cat("gcsfs/both").decode()],
    "set metadata": lambda: [fs.setxattrs("gcsfs/small", k="v"), fs.getxattr("gcsfs/small", "k")],
    "exclusive": lambda: failure(lambda: fs.pipe_file("gcsfs/small", b"x", mode="create")),
    "not found": lambda: failure(lambda: fs.cat("gcsfs/nope")),
    "delete": lambda: fs.rm_file("gcsfs/moved"),
    "delete many": lambda: [
        fs.rm(["gcsfs/written", "gcsfs/blocks", "gcsfs/nothing"]) and None,
        fs.exists("gcsfs/blocks"),
    ],
    "delete all": lambda: [fs.rm("gcsfs", recursive=True) and None, fs.exists("gcsfs")],
}

if __name__ == "__main__":
    results: dict[str, object] = {}
    for name, operation in OPERATIONS.items():
        try:
            results[name] = operation()
        except Exception as error:
            results[name] = f"failed: {error!r}"
    json.dump(results, sys.stdout)
