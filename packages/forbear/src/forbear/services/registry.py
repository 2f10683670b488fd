"""The registry of services: their names, and which of them a request or an RPC goes to.

A service is a package (or module) of `forbear.services` with these names: `RECOMMENDED`, the service with its
recommended rules, `policy`, and `documented` where there is a page to follow. It is loaded when it is first needed.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from forbear.services.cloud_storage import hosts as cloud_storage_hosts
from forbear.services.iam import any_api
from forbear.tables import google_apis

if TYPE_CHECKING:
    from forbear.core.service import Service
    from forbear.grpc.call import RpcService
    from forbear.http.request import HttpService
    from forbear.policy import Policy


class _Location(NamedTuple):
    """The requests that go to a service: APIs in host names, beginnings of RPC names, a test of host and path."""

    apis: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    serves: Callable[[str, str], bool] | None = None


_LOCATIONS = {
    "cloud_storage": _Location((), ("google.storage.",), cloud_storage_hosts.serves),
    "iam": _Location(
        ("iam", "iamcredentials"),
        ("google.iam.admin.", "google.iam.credentials.", "google.iam.v2.", "google.iam.v3."),
    ),
    "memorystore": _Location(("redis", "memorystore"), ("google.cloud.redis.", "google.cloud.memorystore.")),
    "redis": _Location(),
    "resource_manager": _Location(("cloudresourcemanager",), ("google.cloud.resourcemanager.",)),
    "rfc9110": _Location(),
    "aws": _Location(),
}
_NAMED = ("elasticsearch", "graphql", "kubernetes", "llm", "oauth", "slack")
"""Services that only an Api names, by `service=`, or an SDK. They have no policy of their own."""

_BY_API = {api: name for name, location in _LOCATIONS.items() for api in location.apis}
_BY_TEST = [(name, location.serves) for name, location in _LOCATIONS.items() if location.serves is not None]


def names() -> tuple[str, ...]:
    """Return the names of all services, such as "cloud_storage" and "rfc9110"."""
    return tuple(_LOCATIONS)


def names_for_apis() -> tuple[str, ...]:
    """Return the names of the services that an Api may name: those of `names()`, and some that have no hosts."""
    return (*_LOCATIONS, *_NAMED)


def service(name: str) -> "Service":
    """Return the service called `name`, with its recommended rules. Raises KeyError for an unknown name."""
    if name in _NAMED and name != "llm":
        from forbear.services.posts import SERVICES

        return SERVICES[name]
    recommended: Service = _module(name).RECOMMENDED
    return recommended


def policy(name: str, profile: str = "policy") -> "Policy | None":
    """Return the policy called `profile` of the service `name`, None without; KeyError for an unknown service."""
    if name in _NAMED:
        return None
    from forbear.policy import Policy  # only here: this module is loaded with every client

    module = _module(name)
    value: object = getattr(module, profile, None) if profile in getattr(module, "__all__", ("policy",)) else None
    return value if isinstance(value, Policy) else None


def profiles(name: str) -> tuple[str, ...]:
    """Return the names of all policies of the service `name`, "policy" first. KeyError for an unknown service."""
    listed = getattr(_module(name), "__all__", ())
    others = (profile for profile in listed if profile != "policy" and policy(name, profile) is not None)
    return ("policy", *others)


def find(host: str, path: str) -> "HttpService | None":
    """Return the service, with its recommended rules, that answers for `path` on `host`; None if none is known.

    A port in `host` is ignored. The path matters only on hosts that several services share, and on hosts of Google's
    APIs that no service knows: IAM answers for their IAM methods, such as `:setIamPolicy`.

    >>> find("storage.googleapis.com", "/storage/v1/b").name
    'cloud_storage'
    """
    name = _name(host, path)
    return None if name is None else _module(name).RECOMMENDED


def recommend(host: str, path: str) -> "Policy":
    """Return the recommended policy of the service that answers for `path` on `host`, RFC 9110 for unknown ones."""
    value: Policy = _module(_name(host, path) or "rfc9110").policy
    return value


def find_rpc(method: str, host: str = "") -> "RpcService | None":
    """Return the service for the RPC `method`, with its recommended rules, None if there is none.

    Its package decides, for a package of no single service, such as that of long-running operations, the `host`. The
    IAM methods of any other Google API belong to IAM.

    >>> find_rpc("google.iam.admin.v1.IAM/CreateRole").name
    'iam'
    """
    plain = method.removeprefix("/")
    name = next((name for name, location in _LOCATIONS.items() if plain.startswith(location.packages)), None)
    if name is None:
        name = "iam" if any_api.rpc_method_of(plain) else _name(host, "")
    return None if name is None else _module(name).RECOMMENDED


def _name(host: str, path: str) -> str | None:
    if not _is_known(host):
        return None
    for name, serves in _BY_TEST:
        if serves(host, path):
            return name
    known = _BY_API.get(google_apis.api(host) or "")
    return known or ("iam" if any_api.serves(host, path) else None)


@lru_cache(maxsize=256)
def _is_known(host: str) -> bool:
    """Return whether a service may answer on a host, by some path; nearly all hosts have none."""
    kind = cloud_storage_hosts.kind_of(host)
    return kind is not None or google_apis.is_google(host) or google_apis.api(host) is not None


def _module(name: str) -> Any:
    if name not in _LOCATIONS and name != "llm":
        raise KeyError(f"a service must be one of {', '.join(_LOCATIONS)}, got {name!r}")
    return import_module(f"forbear.services.{name}")
