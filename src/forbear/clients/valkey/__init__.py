"""Retries inside valkey-py, as subclasses of its clients: sync and asyncio, standalone, Sentinel and cluster."""

try:
    import valkey
except ImportError as error:
    raise ImportError(
        'forbear.clients.valkey needs valkey-py; install it with: pip install "forbear[valkey]"'
    ) from error

from forbear.clients.valkey.aio import AsyncPipeline, AsyncPubSub, AsyncValkey
from forbear.clients.valkey.aio_cluster import AsyncValkeyCluster
from forbear.clients.valkey.client import Pipeline, PubSub, Valkey
from forbear.clients.valkey.cluster import ValkeyCluster
from forbear.exchange.redis.promises import promised

__all__ = [
    "AsyncPipeline",
    "AsyncPubSub",
    "AsyncValkey",
    "AsyncValkeyCluster",
    "Pipeline",
    "PubSub",
    "Valkey",
    "ValkeyCluster",
    "promised",
]

del valkey
