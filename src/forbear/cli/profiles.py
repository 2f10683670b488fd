"""The policies that have a name on the command line."""

from forbear.cli.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services import registry

DEFAULT = "default"
KINDS = ("policy", "documented")
"""The profiles that a service may offer, the recommended one first."""


def policy(name: str) -> Policy:
    """Return the policy called `name`: "SERVICE" means "SERVICE.policy"."""
    if name == DEFAULT:
        return Policy(OSError, Limits(), Exponential(), name=DEFAULT)
    service, dot, kind = name.partition(".")
    profile = _offered(service, kind if dot else KINDS[0]) if service in registry.names() else None
    if profile is None:
        raise BadInput(f"no such profile: {name}", f"the profiles are {', '.join(names())}")
    return profile


def names() -> list[str]:
    """Return all names that `policy` takes."""
    offered = [(service, kind) for service in registry.names() for kind in KINDS if _offered(service, kind)]
    return [DEFAULT, *(service if kind == KINDS[0] else f"{service}.{kind}" for service, kind in offered)]


def _offered(service: str, kind: str) -> Policy | None:
    return registry.policy(service, kind) if kind in KINDS else None
