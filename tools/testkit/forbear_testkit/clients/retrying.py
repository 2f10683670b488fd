"""A session of aiohttp that retries, for the tests of aiohttp."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from forbear.clients.aiohttp import RetryMiddleware
from forbear.testing import virtual_time


@asynccontextmanager
async def retrying(policy: Any = None, **options: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    """A session that retries, in virtual time."""
    with virtual_time(seed=7):
        async with aiohttp.ClientSession(middlewares=(RetryMiddleware(policy, **options),)) as session:
            yield session
