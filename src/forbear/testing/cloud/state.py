"""All that the cloud remembers in one place: the store, the logs and the armed faults; acts on none of them."""

from forbear.testing.cloud.faults.plan import FaultPlan
from forbear.testing.cloud.journal import Effects, Requests
from forbear.testing.cloud.storage.store import Store


class CloudState:
    """Guarded by `store.lock`."""

    def __init__(self, seed: int = 0, memory_limit: int = 1024**3) -> None:
        self.store = Store(memory_limit=memory_limit)
        self.effects = Effects()
        self.requests = Requests()
        self.plan = FaultPlan(seed)
        self.admitted = 0
        self.resets = 0

    def reset(self) -> None:
        """Forget everything but the seed."""
        with self.store.lock:
            self.store.clear()
            self.plan.clear()
            self.effects.clear()
            self.requests.clear()
            self.admitted = 0
            self.resets += 1
