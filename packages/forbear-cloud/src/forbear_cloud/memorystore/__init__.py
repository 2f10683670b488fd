"""Memorystore for Redis: the operations, with the paths that reach them and their handlers."""

from forbear_cloud.call import Routes, resource_routes
from forbear_cloud.memorystore import instances, jobs

_LOCATION = "/v1/projects/{project}/locations/{location}"
_PREFIX = "redis.projects.locations"

MEMORYSTORE_ROUTES: Routes = (
    *resource_routes(
        f"{_PREFIX}.instances",
        f"{_LOCATION}/instances",
        "resource",
        {
            **instances.handlers(instances.INSTANCES),
            "failover": instances.failover,
            "upgrade": instances.upgrade,
        },
    ),
    *resource_routes(
        f"{_PREFIX}.clusters", f"{_LOCATION}/clusters", "resource", instances.handlers(instances.CLUSTERS)
    ),
    *resource_routes(
        f"{_PREFIX}.operations",
        f"{_LOCATION}/operations",
        "operation",
        {"list": jobs.list_, "get": jobs.get, "cancel": jobs.cancel, "delete": jobs.delete},
    ),
)
