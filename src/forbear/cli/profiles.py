"""The policies that have a name on the command line. It imports a service only when it is named, and knows none."""

import importlib
import pkgutil

from forbear import services
from forbear.cli.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy

DEFAULT = "default"
KINDS = ("policy", "documented")
"""What a service may offer, the recommended one first."""


def policy(name: str) -> Policy:
    """The policy called `name`: "default" is what `forbear.retry` has, "SERVICE" short for "SERVICE.policy"."""
    if name == DEFAULT:
        return Policy(OSError, Limits(), Exponential(), name=DEFAULT)
    service, dot, kind = name.partition(".")
    found = _offered(service, kind if dot else KINDS[0]) if service in _modules() else None
    if found is None:
        raise BadInput(f"no such profile: {name}", f"the profiles are {', '.join(names())}")
    return found


def names() -> list[str]:
    """All names that `policy` takes."""
    found = [DEFAULT]
    for service in _modules():
        found += [service if kind == KINDS[0] else f"{service}.{kind}" for kind in KINDS if _offered(service, kind)]
    return found


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(services.__path__)]


def _offered(service: str, kind: str) -> Policy | None:
    """The policy of that kind, None where a module has none; not every module of the layer is a service."""
    found = getattr(importlib.import_module(f"forbear.services.{service}"), kind, None) if kind in KINDS else None
    return found if isinstance(found, Policy) else None
