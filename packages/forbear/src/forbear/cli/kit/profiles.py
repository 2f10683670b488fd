"""The names of policies on the command line: one option and one error for all commands.

`forbear.services.policies` says which names there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.output import BadInput
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.policies import DEFAULT_PROFILE, RECOMMENDED, AmbiguousName, find_policy, policy_names

__all__ = [
    "DEFAULT_PROFILE", "RECOMMENDED", "ProfileChoice", "named_policy", "profile_option", "retry_not_found_option",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def profile_option(default: str, text: str) -> Callable[[F], F]:
    """Return the decorator that adds `--profile` to a command; `text` is its help."""
    return click.option(
        "--profile", default=default, show_default=True, metavar="NAME", help=text, shell_complete=complete_profile
    )


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
        try:
            policy = find_policy(self.name, service)
        except AmbiguousName as error:
            raise BadInput(
                f"several services have the profile {self.name}", f"name one of {', '.join(error.choices)}"
            ) from None
        full = f"{service}.{self.name}" if service and self.service is None and not self.is_plain else self.name
        if policy is None:
            raise BadInput(f"no such profile: {full}", f"the profiles are {', '.join(policy_names())}")
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
