"""Adapters that add retries to client libraries at each library's own extension point, a module or package for each.

`install` puts retries into a finished client of any library whose clients can be wrapped by public means. The library
is that of the client's class, or of the client inside it: SDKs keep one of httpx as `_client`.
"""

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.policy import Policy
    from forbear.run.derive import ClientOptions
    from forbear.services.aws.vouch import SafeCalls

    C = TypeVar("C")

    class InstallOptions(ClientOptions, total=False):
        """The options of adapters for HTTP, and the keywords of `forbear.retry` that adapters take."""

        safe: Safe | SafeCalls
        apis: Apis
        settle: Settle
        buffer: int

else:  # a type checker that sees `__getattr__` accepts any name

    def __dir__():
        """Return the names of the adapters, for shells."""
        from pkgutil import iter_modules

        return [found.name for found in iter_modules(__path__) if not found.name.startswith("_")]

    def __getattr__(name):
        """Load an adapter when it is first used."""
        if name not in __dir__():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


_INSTALLED_BY = {
    "aioboto3": "aiobotocore",
    "aiobotocore": "aiobotocore",
    "boto3": "botocore",
    "botocore": "botocore",
    "google": "google",
    "google.auth": "requests",
    "google.cloud.storage": "google_storage",
    "googleapiclient": "discovery",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "requests": "requests",
}
"""The modules of `forbear.clients` that have an `install`, by the package of the clients that it takes."""

_WRITTEN_INSTEAD = {
    "aiohttp": "aiohttp.ClientSession(middlewares=(forbear.clients.aiohttp.RetryMiddleware(),))",
    "grpc": "grpc.intercept_channel(channel, forbear.clients.grpc.RetryInterceptor(channel=channel))",
    "redis": "forbear.clients.redis.Redis(...), or AsyncRedis, RedisCluster and AsyncRedisCluster, in its place",
    "urllib3": "urllib3.PoolManager(retries=forbear.clients.urllib3.Retry())",
    "valkey": "forbear.clients.valkey.Valkey(...), or AsyncValkey and ValkeyCluster, in its place",
}
"""The line for clients that are finished too early, by their package."""


def install(client: "C", policy: "Policy | None" = None, **options: "Unpack[InstallOptions]") -> "C":
    """Put retries into a client that exists already, and return it: `client = forbear.install(httpx.Client())`.

    - `client`: one of httpx, httpx2, boto3, aiobotocore, aioboto3 or google-cloud-storage, a generated client of
      Google's APIs, a service of google-api-python-client, a session of requests or boto3, or the client of an SDK that
      sends by httpx, such as those of OpenAI and Anthropic. It keeps its proxies, certificates and all other settings.
    - `policy` and the keywords of `forbear.retry`, such as `attempts=3, timeout=30`: limits and waits. Without them,
      each service has its recommended ones. The tables of services stay.
    - `safe` and the other options are those of the adapter for the library.

    TypeError for any other object, with the line to write instead; and as the library's own `install` raises.

    >>> import httpx
    >>> with forbear.install(httpx.Client(), attempts=3) as client:
    ...     pass
    """
    for kind in (*type(client).__mro__, *type(getattr(client, "_client", None)).__mro__):
        module = _entry(_INSTALLED_BY, kind.__module__)
        if module is not None:
            installed: C = import_module(f"forbear.clients.{module}").install(client, policy, **options)
            return installed
    raise _refusal(client)


def _refusal(client: object) -> TypeError:
    for kind in type(client).__mro__:
        line = _entry(_WRITTEN_INSTEAD, kind.__module__)
        if line is not None:
            library = kind.__module__.partition(".")[0]
            return TypeError(f"`client` of {library} takes no retries once it is made: write {line}")
    if isinstance(client, type):
        return TypeError(f"`client` must be a client, not its class: write {client.__name__}(...), got {client!r}")
    if isinstance(client, ModuleType):
        return TypeError(f"`client` must be a client, such as httpx.Client(), not the module {client.__name__}")
    return TypeError(
        "`client` must be one of httpx, httpx2, requests, boto3 or Google, or of an SDK which sends by httpx; "
        f"for any other, decorate the function that calls it: @forbear.retry(forbear.transient); got {client!r}"
    )


def _entry(table: "dict[str, Any]", module: str) -> str | None:
    """Return the entry of a table for the package of `module`, or a package that it is part of; None without one."""
    parts = module.split(".")
    packages = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((table[package] for package in packages if package in table), None)
