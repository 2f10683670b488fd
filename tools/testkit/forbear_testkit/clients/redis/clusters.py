"""The clients of a cluster, and sessions with them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import redis
import redis.asyncio
import valkey
import valkey.asyncio

from forbear.clients.redis import AsyncRedisCluster, RedisCluster
from forbear.clients.valkey import AsyncValkeyCluster, ValkeyCluster
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, Session, no_retry
from forbear_testkit.clients.redis.nodes import HERE, THERE

CLUSTERS = [
    Flavour("redis", redis, False, RedisCluster, redis.RedisCluster, no_retry(redis, redis)),
    Flavour("redis-async", redis, True, AsyncRedisCluster, redis.asyncio.RedisCluster, no_retry(redis, redis.asyncio)),
    Flavour("valkey", valkey, False, ValkeyCluster, valkey.ValkeyCluster, no_retry(valkey, valkey)),
    Flavour(
        "valkey-async", valkey, True, AsyncValkeyCluster, valkey.asyncio.ValkeyCluster, no_retry(valkey, valkey.asyncio)
    ),
]


WITH_TRANSACTIONS = CLUSTERS[:2]


LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


@contextmanager
def open_with(flavour: Flavour, options: dict[str, Any], **kwargs: Any) -> Generator[Session]:
    """A session with our client, which knows the nodes: before that redis-py asks any of them, past the proxies."""
    with flavour.session(lambda: flavour.ours(**{"policy": AT_ONCE} | options | kwargs)) as session:
        if flavour.is_async:
            session("initialize")
        yield session


def value(nodes: tuple[int, ...], key: str) -> int:
    """Return the value that the cluster has for HERE or THERE, read past every proxy."""
    with redis.Redis(port=nodes[(HERE, THERE).index(key)]) as client:
        return int(client.get(key) or 0)
