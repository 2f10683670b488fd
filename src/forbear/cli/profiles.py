"""The names of policies on the command line: one list, one parser and one error for all commands.

A name is one of these:

- `default`, the limits and waits of `forbear.retry`;
- a preset, such as `mobile`, which has limits and waits only;
- a service, such as `iam`, for its recommended policy;
- a service and one of its profiles, such as `cloud_storage.gsutil`;
- a profile alone, such as `gsutil`, if the command says which service is meant or if only one service has it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from forbear.cli.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import registry

DEFAULT_PROFILE = "default"
RECOMMENDED = "policy"

F = TypeVar("F", bound=Callable[..., Any])


def profile_option(default: str, text: str) -> Callable[[F], F]:
    """Return the decorator that adds `--profile` to a command; `text` is its help."""
    return click.option("--profile", default=default, show_default=True, metavar="NAME", help=text)


def retry_not_found_option(function: F) -> F:
    """Add `--retry-not-found` to a command."""
    return click.option("--retry-not-found", is_flag=True, help="Retry 404, too: an option of the retry page of IAM.")(
        function
    )


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The name of a policy and `--retry-not-found`, as a user chose them."""

    name: str
    retry_not_found: bool = False

    @property
    def service(self) -> str | None:
        """The service that the name begins with, None if it names no service."""
        service = self.name.partition(".")[0]
        return service if service in registry.names() else None

    @property
    def is_plain(self) -> bool:
        """True for a name that stands for limits and waits only: "default" or a preset."""
        return self.name == DEFAULT_PROFILE or self.name in PRESETS

    def check_service(self, service: str, reason: str) -> None:
        """Raise BadInput if the name has another service than `service`; `reason` says what needs that one."""
        if self.service not in (None, service):
            raise BadInput(
                f"`--profile {self.name}` does not go with {reason}", f"name a profile of {service}, or a preset"
            )

    def policy(self, service: str | None = None) -> Policy:
        """Return the policy; raise BadInput if there is none.

        `service` is the service that the command is about, None for none in particular. It completes the name of a
        profile, and "default" and presets then bring their limits and waits to its recommended policy.
        """
        if service is not None and service not in registry.names():
            raise BadInput(f"no such service: {service}", f"the services are {', '.join(registry.names())}")
        policy = _named(self.name, service)
        full = f"{service}.{self.name}" if service and self.service is None and not self.is_plain else self.name
        if policy is None:
            raise BadInput(f"no such profile: {full}", f"the profiles are {', '.join(profile_names())}")
        if not self.retry_not_found:
            return policy
        try:
            return policy.with_retry_not_found()
        except TypeError:
            raise BadInput(
                f"`--retry-not-found` does not go with the profile {full}", "it is for iam and resource_manager"
            ) from None


def named_policy(name: str, service: str | None = None) -> Policy:
    """Return the policy called `name`, for `service` as in `ProfileChoice.policy`; raise BadInput if there is none."""
    return ProfileChoice(name).policy(service)


def profile_names() -> list[str]:
    """Return all full names of policies: "default", the services with their profiles, and the presets."""
    services = [
        service if profile == RECOMMENDED else f"{service}.{profile}"
        for service in registry.names()
        for profile in registry.profiles(service)
    ]
    return [DEFAULT_PROFILE, *services, *PRESETS]


def _named(name: str, service: str | None) -> Policy | None:
    if name == DEFAULT_PROFILE or name in PRESETS:
        base = Policy(OSError, name=name) if service is None else _of_service(service, RECOMMENDED)
        if base is None:
            return None
        return base.with_preset(name) if name in PRESETS else base.with_limits(Limits()).with_backoff(Exponential())
    known, dot, profile = name.partition(".")
    if known in registry.names():
        return _of_service(known, profile if dot else RECOMMENDED)
    if dot:
        return None
    return _of_service(service, name) if service is not None else _of_any_service(name)


def _of_service(service: str, profile: str) -> Policy | None:
    return registry.policy(service, profile) if service in registry.names() else None


def _of_any_service(profile: str) -> Policy | None:
    """Return the policy of the only service that has this profile, None if none has; BadInput if several have it."""
    offers = {name: policy for name in registry.names() if (policy := registry.policy(name, profile)) is not None}
    if len(offers) > 1:
        names = ", ".join(f"{service}.{profile}" for service in offers)
        raise BadInput(f"several services have the profile {profile}", f"name one of {names}")
    return next(iter(offers.values()), None)
