"""Run the operations of obstore, each by its name, and print what each returned as JSON: `obstore.py URL`.

Buckets must exist, because obstore has no call that creates them.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

URL = sys.argv[1]
DATA = bytes(range(256)) * 60_000
# Its folder, which has a file of its name, comes first otherwise.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
obstore: Any = import_module("obstore")
store: Any = import_module("obstore.store").GCSStore(
    "obstore",
    config={"base_url": URL},
    client_options={"allow_http": True},
    retry_config={"max_retries": 0},
    # With `skip_signature` alone it asks the metadata server, which is not on loopback, for a token.
    credential_provider=lambda: {"token": "none", "expires_at": None},
)


def failure(call: Callable[[], object]) -> str:
    """Return the name of the error."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


def get(name: str, **options: object) -> bytes:
    """Read an object."""
    return bytes(obstore.get(store, name, options=options or None).bytes())


def put(name: str, data: bytes, **options: object) -> object:
    """Write an object; return None."""
    return obstore.put(store, name, data, **options) and None


def listed(prefix: str | None = None) -> list[str]:
    """Return the names below a prefix."""
    return sorted(item["path"] for page in obstore.list(store, prefix=prefix) for item in page)


def level() -> list[list[str]]:
    """Return the names and prefixes of one level."""
    found = obstore.list_with_delimiter(store)
    return [sorted(item["path"] for item in found["objects"]), sorted(found["common_prefixes"])]


def streamed() -> bool:
    """Read in pieces."""
    return b"".join(bytes(piece) for piece in obstore.get(store, "large").stream(min_chunk_size=1_000_000)) == DATA


def opened() -> bool:
    """Write through a file."""
    with obstore.open_writer(store, "opened", buffer_size=5 * 1024 * 1024) as file:
        for start in range(0, len(DATA), 1_000_000):
            file.write(DATA[start : start + 1_000_000])
    return get("opened") == DATA


OPERATIONS: dict[str, Callable[[], object]] = {
    "put": lambda: [put("small", b"hello"), get("small").decode()],
    "put nothing": lambda: [put("nothing", b""), get("nothing").decode()],
    "put in parts": lambda: [put("large", DATA, use_multipart=True, chunk_size=5 * 1024 * 1024), get("large") == DATA],
    "put with attributes": lambda: [
        put("typed", b"x", attributes={"Content-Type": "text/plain", "k": "v"}),
        sorted(obstore.get(store, "typed").attributes.items()),
    ],
    "create": lambda: [put("new", b"x", mode="create"), failure(lambda: put("new", b"y", mode="create"))],
    "update": lambda: [
        put(
            "new", b"y", mode={"version": str((seen := obstore.head(store, "new"))["version"]), "e_tag": seen["e_tag"]}
        ),
        failure(lambda: put("new", b"z", mode={"version": "1", "e_tag": "x"})),
    ],
    "write": opened,
    "stream": streamed,
    "get a range": lambda: bytes(obstore.get_range(store, "small", start=1, length=3)).decode(),
    "get ranges": lambda: [
        bytes(each).decode() for each in obstore.get_ranges(store, "small", starts=[0, 3], lengths=[2, 2])
    ],
    "get a suffix": lambda: get("small", range={"suffix": 2}).decode(),
    "get if changed": lambda: failure(lambda: get("small", if_none_match=obstore.head(store, "small")["e_tag"])),
    "get if the same": lambda: failure(lambda: get("small", if_match="other")),
    "head": lambda: [obstore.head(store, "small")[name] for name in ("path", "size")],
    "not found": lambda: failure(lambda: get("nope")),
    "copy": lambda: [obstore.copy(store, "small", "dir/copy"), get("dir/copy").decode()],
    "copy over": lambda: failure(lambda: obstore.copy(store, "small", "dir/copy", overwrite=False)),
    "rename": lambda: [obstore.rename(store, "dir/copy", "dir/moved"), listed("dir")],
    "list": listed,
    "list one level": level,
    "odd names": lambda: [put("ä b/%2F?#+&=", b"x"), get("ä b/%2F?#+&=").decode(), listed("ä b")],
    "delete": lambda: [obstore.delete(store, "small"), failure(lambda: get("small"))],
    "delete many": lambda: [obstore.delete(store, listed()), listed()],
}

if __name__ == "__main__":
    results: dict[str, object] = {}
    for name, operation in OPERATIONS.items():
        try:
            results[name] = operation()
        except Exception as error:
            results[name] = f"failed: {error!r}"
    json.dump(results, sys.stdout)
