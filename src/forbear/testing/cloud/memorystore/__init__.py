"""Memorystore for Redis: the handler of each operation."""

from collections.abc import Mapping

from forbear.testing.cloud.call import Handler
from forbear.testing.cloud.memorystore import jobs, resources

_PREFIX = "redis.projects.locations"

HANDLERS: Mapping[str, Handler] = {
    **{f"{_PREFIX}.instances.{name}": each for name, each in resources.handlers(resources.INSTANCES).items()},
    **{f"{_PREFIX}.clusters.{name}": each for name, each in resources.handlers(resources.CLUSTERS).items()},
    f"{_PREFIX}.instances.failover": resources.failover,
    f"{_PREFIX}.instances.upgrade": resources.upgrade,
    f"{_PREFIX}.operations.get": jobs.get,
    f"{_PREFIX}.operations.list": jobs.list_,
    f"{_PREFIX}.operations.cancel": jobs.cancel,
    f"{_PREFIX}.operations.delete": jobs.delete,
}
