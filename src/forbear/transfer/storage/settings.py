"""Settings: what a Storage is opened with, as a value that can be sent to other processes."""

from dataclasses import dataclass

from forbear.policy import Policy
from forbear.transfer.storage.credentials import Credentials
from forbear.transfer.storage.storage import CONNECTIONS, STALL_TIMEOUT, Storage


@dataclass(frozen=True, slots=True)
class Settings:
    """What to open a Storage with; see there."""

    endpoint: str | None = None
    credentials: Credentials | None = None
    policy: Policy | None = None
    connections: int = CONNECTIONS
    stall_timeout: float = STALL_TIMEOUT
    user_project: str | None = None

    def storage(self) -> Storage:
        """A Storage to be entered."""
        return Storage(
            endpoint=self.endpoint,
            credentials=self.credentials,
            policy=self.policy,
            connections=self.connections,
            stall_timeout=self.stall_timeout,
            user_project=self.user_project,
        )
