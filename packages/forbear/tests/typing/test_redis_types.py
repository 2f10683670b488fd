"""Check how type checkers see the clients of Redis and Valkey. They check this file, and pytest runs it."""

from typing import assert_type

import redis
import redis.asyncio
import valkey
import valkey.asyncio
from redis import client

from forbear.clients import redis as for_redis
from forbear.clients import valkey as for_valkey


def test_clients_are_those_of_the_libraries() -> None:
    """Each is a subclass of the library's own class, and its commands keep their types."""
    made: redis.Redis = for_redis.Redis(policy=None)
    assert isinstance(made, redis.Redis)
    for ours, stock in (
        (for_redis.Redis, redis.Redis),
        (for_redis.Pipeline, client.Pipeline),
        (for_redis.PubSub, client.PubSub),
        (for_redis.RedisCluster, redis.RedisCluster),
        (for_redis.AsyncRedis, redis.asyncio.Redis),
        (for_redis.AsyncRedisCluster, redis.asyncio.RedisCluster),
        (for_valkey.Valkey, valkey.Valkey),
        (for_valkey.ValkeyCluster, valkey.ValkeyCluster),
        (for_valkey.AsyncValkey, valkey.asyncio.Valkey),
        (for_valkey.AsyncValkeyCluster, valkey.asyncio.ValkeyCluster),
    ):
        assert issubclass(ours, stock)


def test_what_clients_make() -> None:
    """Clients make pipelines, subscriptions and clients of forbear's classes."""
    one = for_redis.Redis(policy=None)
    assert type(assert_type(one.pipeline(), for_redis.Pipeline)) is for_redis.Pipeline
    assert type(assert_type(one.pubsub(), for_redis.PubSub)) is for_redis.PubSub
    assert_type(one.connection_pool, redis.ConnectionPool)
    url = "redis://localhost"
    assert type(assert_type(for_redis.Redis.from_url(url), for_redis.Redis)) is for_redis.Redis
    assert type(assert_type(for_redis.AsyncRedis.from_url(url), for_redis.AsyncRedis)) is for_redis.AsyncRedis
    other = for_valkey.Valkey(policy=None)
    assert type(assert_type(other.pipeline(), for_valkey.Pipeline)) is for_valkey.Pipeline
    assert type(assert_type(other.pubsub(), for_valkey.PubSub)) is for_valkey.PubSub
    awaited = for_valkey.AsyncValkey(policy=None)
    assert type(assert_type(awaited.pipeline(), for_valkey.AsyncPipeline)) is for_valkey.AsyncPipeline
    assert type(assert_type(awaited.pubsub(), for_valkey.AsyncPubSub)) is for_valkey.AsyncPubSub
