"""Retries inside redis-py, as subclasses of its clients: sync and asyncio, standalone, Sentinel and cluster."""

try:
    import redis
except ImportError as error:
    raise ImportError('forbear.clients.redis needs redis-py; install it with: pip install "forbear[redis]"') from error

from forbear.clients.redis.aio import AsyncPipeline, AsyncPubSub, AsyncRedis
from forbear.clients.redis.aio_cluster import AsyncRedisCluster
from forbear.clients.redis.client import Pipeline, PubSub, Redis
from forbear.clients.redis.cluster import RedisCluster
from forbear.exchange.redis.promises import promised

__all__ = [
    "AsyncPipeline",
    "AsyncPubSub",
    "AsyncRedis",
    "AsyncRedisCluster",
    "Pipeline",
    "PubSub",
    "Redis",
    "RedisCluster",
    "promised",
]

del redis
