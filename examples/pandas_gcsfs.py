"""Summarise sales with data frames in Cloud Storage. Libraries: pandas and gcsfs.

gcsfs sends its requests through aiohttp, and so through forbear's middleware. A read that breaks off is continued, and
the summary is written once: mode "xb" makes the upload conditional, so that it may be repeated.
"""

import sys
from typing import Any

import pandas as pd

from forbear.clients.aiohttp import RetryMiddleware
from forbear.services import cloud_storage


def options(**more: Any) -> dict[str, Any]:
    """Return the `storage_options` of pandas."""
    middleware = RetryMiddleware(cloud_storage.policy)
    return {"session_kwargs": {"middlewares": (middleware,)}, **more}


def summarise(sales: str, summary: str, storage_options: dict[str, Any]) -> Any:
    """Add up the amounts of each shop, write them to a new object, and return them."""
    table: Any = pd.read_csv(sales, storage_options=storage_options)
    total = table.groupby("shop", as_index=False)[["amount"]].sum()
    total.to_csv(summary, index=False, mode="xb", storage_options=storage_options)
    return total


if __name__ == "__main__":
    print(summarise(sys.argv[1], sys.argv[2], options()))
