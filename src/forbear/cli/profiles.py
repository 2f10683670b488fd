"""The policies that have a name on the command line. It imports a service only when it is named."""

import importlib
from functools import cache

from forbear.cli.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy

DEFAULT = "default"
KINDS = ("policy", "documented")
SERVICES = {"cloud_storage": KINDS, "rfc9110": KINDS[:1]}
"""Modules of `forbear.services` and the policies that each of them has; the first is the recommended one."""

NAMES = (
    DEFAULT,
    *(service if kind == KINDS[0] else f"{service}.{kind}" for service, kinds in SERVICES.items() for kind in kinds),
)


@cache
def policy(name: str) -> Policy:
    """The policy called `name`: "default" is what `forbear.retry` has, "SERVICE" short for "SERVICE.policy"."""
    if name == DEFAULT:
        return Policy(OSError, Limits(), Exponential(), name=DEFAULT)
    service, dot, kind = name.partition(".")
    kind = kind if dot else KINDS[0]
    if kind not in SERVICES.get(service, ()):
        raise BadInput(f"no such profile: {name}", f"the profiles are {', '.join(NAMES)}")
    found: Policy = getattr(importlib.import_module(f"forbear.services.{service}"), kind)
    return found
