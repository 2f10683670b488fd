"""Adapters that add retries to client libraries at each library's own extension point, a module or package for each."""

TYPE_CHECKING = False
if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    from forbear.core.lazy import exports

    _ADAPTERS = (
        "aiohttp",
        "botocore",
        "google",
        "google_storage",
        "grpc",
        "httpx",
        "httpx2",
        "redis",
        "requests",
        "urllib3",
        "valkey",
    )
    __getattr__ = exports(__name__, {name: f"{name}:*" for name in _ADAPTERS})[0]

    def __dir__():
        return list(_ADAPTERS)
