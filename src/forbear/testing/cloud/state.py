"""The state of a cloud: what it stores, its logs and its faults."""

from forbear.testing.cloud.faults.plan import FaultPlan
from forbear.testing.cloud.journal import Effects, Requests
from forbear.testing.cloud.storage.store import Store


class CloudState:
    """Everything that a cloud remembers; hold `store.lock` to use it."""

    def __init__(self, seed: int = 0, memory_limit: int = 1024**3) -> None:
        self.store = Store(memory_limit=memory_limit)
        self.effects = Effects()
        self.requests = Requests()
        self.plan = FaultPlan(seed)
        self.admitted = 0
        self.resets = 0

    def reset(self) -> None:
        """Forget everything except the seed."""
        with self.store.lock:
            self.store.clear()
            self.plan.clear()
            self.effects.clear()
            self.requests.clear()
            self.admitted = 0
            self.resets += 1
