"""The faults that are armed: counts who has passed and decides who is hit; does nothing itself."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.storm import Storm
from forbear.testing.cloud.wire import Request


@dataclass(slots=True)
class _Armed:
    fault: Fault
    seen: int = 0
    fired: int = 0

    def fires(self, request: Request, operation: str | None, chance: Callable[[], float]) -> bool:
        match = self.fault.match
        if self.spent or not match.meets(request, operation):
            return False
        self.seen += 1
        if self.seen <= match.skip or (match.probability < 1 and chance() >= match.probability):
            return False
        self.fired += 1
        return True

    @property
    def spent(self) -> bool:
        times = self.fault.match.times
        return times is not None and self.fired >= times


class Plan:
    """Faults in the order they were added: the first that fires takes the request, and storms come last."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Disarm everything and start the dice afresh."""
        self._armed: list[_Armed] = []
        self._storms: list[Storm] = []
        self._dice = random.Random(self._seed)

    def add(self, fault: Fault | Storm) -> None:
        """Arm a fault or a storm."""
        if isinstance(fault, Storm):
            self._storms.append(fault)
        else:
            self._armed.append(_Armed(fault))

    @property
    def pending(self) -> int:
        """How many armed faults may still fire; storms are not counted."""
        return sum(not armed.spent for armed in self._armed)

    def draw(self, request: Request, operation: str | None) -> Fault | None:
        """The fault that meets this request, if any does; to be asked once per request."""
        for armed in self._armed:
            if armed.fires(request, operation, self._dice.random):
                return armed.fault
        for storm in self._storms:
            if (fault := storm.draw(request, operation)) is not None:
                return fault
        return None
