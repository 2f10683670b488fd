"""The names of policies, for the command line and for simulations.

A name is one of these:

- `default`, the limits and waits of `forbear.retry`;
- a preset, such as `mobile`, which has limits and waits only;
- a service, such as `iam`, for its recommended policy;
- a service and one of its profiles, such as `cloud_storage.gsutil`;
- a profile alone, such as `gsutil`, if the caller says which service is meant or if only one service has it.
"""

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import registry

DEFAULT_PROFILE = "default"
RECOMMENDED = "policy"


class AmbiguousName(ValueError):
    """The error for a profile's name of several services; `choices` are its full names. Example: see `find_policy`."""

    def __init__(self, profile: str, choices: list[str]) -> None:
        super().__init__(f"several services have the profile {profile}; name one of {', '.join(choices)}")
        self.choices = choices


def find_policy(name: str, service: str | None = None) -> Policy | None:
    """Return the policy called `name`, None if there is none; raise AmbiguousName if several services have it.

    `service` is the one that is meant: it completes a profile's name, and its policy takes the waits of a preset.

    >>> find_policy("cloud_storage.documented").limits
    Limits(attempts=None, timeout=600)
    >>> find_policy("documented")
    Traceback (most recent call last):
        ...
    forbear.services.policies.AmbiguousName: several services have the profile documented; ...
    """
    if name == DEFAULT_PROFILE or name in PRESETS:
        base = Policy(OSError, name=name) if service is None else _find_in_service(service, RECOMMENDED)
        if base is None:
            return None
        return base.with_preset(name) if name in PRESETS else base.with_limits(Limits()).with_backoff(Exponential())
    known, dot, profile = name.partition(".")
    if known in registry.names():
        return _find_in_service(known, profile if dot else RECOMMENDED)
    if dot:
        return None
    return _find_in_service(service, name) if service is not None else _find_in_any_service(name)


def policy_names() -> list[str]:
    """Return all full names of policies: "default", the services with their profiles, and the presets.

    >>> policy_names()[:3]
    ['default', 'cloud_storage', 'cloud_storage.documented']
    """
    services = [
        service if profile == RECOMMENDED else f"{service}.{profile}"
        for service in registry.names()
        for profile in registry.profiles(service)
    ]
    return [DEFAULT_PROFILE, *services, *PRESETS]


def _find_in_service(service: str, profile: str) -> Policy | None:
    return registry.policy(service, profile) if service in registry.names() else None


def _find_in_any_service(profile: str) -> Policy | None:
    """Return the policy of the only service that has this profile, None if none has; AmbiguousName if several have."""
    offers = {name: policy for name in registry.names() if (policy := registry.policy(name, profile)) is not None}
    if len(offers) > 1:
        raise AmbiguousName(profile, [f"{service}.{profile}" for service in offers])
    return next(iter(offers.values()), None)
