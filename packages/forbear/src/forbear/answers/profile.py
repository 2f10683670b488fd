"""The policy that an answer is about, by its name.

`forbear.services.policies` says which names there are.
"""

from forbear.answers.errors import NoAnswer
from forbear.core.dataclass import dataclass
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.policies import DEFAULT_PROFILE, AmbiguousName, find_policy, policy_names


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The name of a policy, and whether to retry 404, too, as a user chose them. Example: see `explain_request`."""

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
        """Raise NoAnswer if the name has another service than `service`; `reason` says what needs that one."""
        if self.service not in (None, service):
            raise NoAnswer(
                f"`profile` {self.name} does not go with {reason}", f"name a profile of {service}, or a preset"
            )

    def policy(self, service: str | None = None) -> Policy:
        """Return the policy, as `find_policy` finds it for a service; raise NoAnswer if there is none."""
        if service is not None and service not in registry.names():
            raise NoAnswer(f"no such service: {service}", f"the services are {', '.join(registry.names())}")
        try:
            policy = find_policy(self.name, service)
        except AmbiguousName as error:
            raise NoAnswer(
                f"several services have the profile {self.name}", f"name one of {', '.join(error.choices)}"
            ) from None
        full = f"{service}.{self.name}" if service and self.service is None and not self.is_plain else self.name
        if policy is None:
            raise NoAnswer(f"no such profile: {full}", f"the profiles are {', '.join(policy_names())}")
        if not self.retry_not_found:
            return policy
        try:
            return policy.with_retry_not_found()
        except TypeError:
            raise NoAnswer(
                f"`retry_not_found` does not go with the profile {full}", "it is for iam and resource_manager"
            ) from None
