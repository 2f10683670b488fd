"""The operations of Memorystore for Redis that are served; data only."""

_LOCATION = "/v1/projects/{project}/locations/{location}"


def _resources(kind: str) -> tuple[tuple[str, str, str], ...]:
    collection = f"{_LOCATION}/{kind}"
    prefix = f"redis.projects.locations.{kind}"
    return (
        (f"{prefix}.create", "POST", collection),
        (f"{prefix}.list", "GET", collection),
        (f"{prefix}.get", "GET", f"{collection}/{{resource}}"),
        (f"{prefix}.patch", "PATCH", f"{collection}/{{resource}}"),
        (f"{prefix}.delete", "DELETE", f"{collection}/{{resource}}"),
    )


_OPERATIONS = f"{_LOCATION}/operations"
_INSTANCE = f"{_LOCATION}/instances/{{resource}}"

MEMORYSTORE_ROUTES: tuple[tuple[str, str, str], ...] = (
    *_resources("instances"),
    *_resources("clusters"),
    ("redis.projects.locations.instances.failover", "POST", f"{_INSTANCE}:failover"),
    ("redis.projects.locations.instances.upgrade", "POST", f"{_INSTANCE}:upgrade"),
    ("redis.projects.locations.operations.list", "GET", _OPERATIONS),
    ("redis.projects.locations.operations.get", "GET", f"{_OPERATIONS}/{{operation}}"),
    ("redis.projects.locations.operations.cancel", "POST", f"{_OPERATIONS}/{{operation}}:cancel"),
    ("redis.projects.locations.operations.delete", "DELETE", f"{_OPERATIONS}/{{operation}}"),
)

JOBS = tuple(
    operation
    for operation, _, _ in MEMORYSTORE_ROUTES
    if operation.endswith((".create", ".patch", "instances.delete", "clusters.delete", ".failover", ".upgrade"))
)
"""Those that start a long-running operation."""
