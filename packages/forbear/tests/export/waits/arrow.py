"""Read objects of the bucket b, all at the same time, with the google-cloud-cpp in pyarrow: `arrow.py URL HOW_MANY`.

It needs the package pyarrow, which sets no backoff, so that the client's own applies.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

fs: Any = import_module("pyarrow.fs")


def read(name: str) -> bool:
    """Return whether an object exists, with a client of its own: one waits for one call at a time."""
    files = fs.GcsFileSystem(
        anonymous=True,
        scheme="http",
        endpoint_override=urlsplit(sys.argv[1]).netloc,
        retry_time_limit=timedelta(minutes=5),
    )
    return bool(files.get_file_info(f"b/{name}").type == fs.FileType.File)


calls = int(sys.argv[2])
with ThreadPoolExecutor(calls) as threads:
    assert all(threads.map(read, (f"o{each:04d}" for each in range(calls))))
