"""Retries inside redis-py, as subclasses of its clients: sync and asyncio, standalone, Sentinel and cluster."""

# pyright: reportUnknownMemberType=false
# redis-py declares only some of its types.

try:
    import redis
except ImportError as error:
    raise ImportError('forbear.clients.redis needs redis-py; install it with: pip install "forbear[redis]"') from error

from redis import client as _sync
from redis.asyncio import client as _async

from forbear.clients._redis.aio import AsyncClientMixin, AsyncPipelineMixin, AsyncPubSubMixin
from forbear.clients._redis.client import ClientMixin, PipelineMixin, PubSubMixin
from forbear.clients.redis.cluster import AsyncRedisCluster, RedisCluster, async_once, once
from forbear.exchange.redis.work import promised

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


class Pipeline(PipelineMixin, _sync.Pipeline):
    """A pipeline of a `Redis`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.
    """

    _conflict = redis.WatchError


class PubSub(PubSubMixin, _sync.PubSub):
    """Subscriptions of a `Redis`. Messages that are published while it connects again are lost."""


# The library names its own class where the mixins return Self, and declares `command_info` of asyncio clients twice.


class Redis(ClientMixin[Pipeline, PubSub], redis.Redis):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A `redis.Redis` that retries what may be repeated: `Redis(host="localhost")` takes all the same arguments.

    Each command is looked up in the table of `forbear.services.redis`. A command that was certainly not executed is
    sent again; one whose response was lost is sent again only if executing it twice is harmless. `policy` decides how
    long to hold back and when to stop, by default `forbear.services.redis.policy`; None sends everything once. A policy
    of your own brings its limits and its `on`; the table stays. Its `attempt_timeout` (seconds) becomes the timeouts of
    the sockets. `safe` names commands that may be executed twice, whatever the table says: "INCR", or several names.

    The library's own retries are off, and asking for them is a TypeError: they repeat any command. A `connection_pool`
    has to be without them, too (ValueError).
    """

    _pipeline_class = Pipeline
    _pubsub_class = PubSub
    _once = staticmethod(once)


class AsyncPipeline(AsyncPipelineMixin, _async.Pipeline):  # type: ignore[misc]
    """A pipeline of an `AsyncRedis`, with its retries.

    If a connection is lost under WATCH and EXEC may have been executed, that error is raised, not a WatchError.
    """

    _conflict = redis.WatchError


class AsyncPubSub(AsyncPubSubMixin, _async.PubSub):
    """Subscriptions of an `AsyncRedis`. Messages that are published while it connects again are lost."""


class AsyncRedis(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
    AsyncClientMixin[AsyncPipeline, AsyncPubSub], _async.Redis
):
    """A `redis.asyncio.Redis` that retries as `Redis` does: `AsyncRedis(host="localhost")` takes the same arguments.

    The policy's `attempt_timeout` (seconds) interrupts an attempt, whatever it is waiting for.
    """

    _pipeline_class = AsyncPipeline
    _pubsub_class = AsyncPubSub
    _once = staticmethod(async_once)
