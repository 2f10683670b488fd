"""A budget whose `take` does I/O, as one that is shared through a server would."""

from forbear.core.events import Event, GaveUp, Scheduled
from forbear.policy import Policy
from forbear.run.budget import Budget
from forbear.testing.virtual_clock import clock
from forbear_testkit.run.cases import BUSY


class Remote(Budget):
    """A budget that asks a server: it answers from a list, after half a virtual second; `log` has every step."""

    __slots__ = ("answers", "log")

    def __init__(self, *answers: bool) -> None:
        super().__init__()
        self.answers = list(answers)
        self.log: list[str] = []

    def take(self) -> bool:
        """Answer a sync loop."""
        clock().sleep(0.5)
        return self._answer("take")

    async def atake(self) -> bool:
        """Answer an async loop."""
        await clock().asleep(0.5)
        return self._answer("atake")

    def note(self, event: Event) -> None:
        """Note an event, as a listener."""
        if isinstance(event, Scheduled | GaveUp):
            self.log.append(type(event).__name__)

    def policy(self) -> Policy:
        """Return a policy that shares this budget and notifies it of events."""
        return BUSY.with_budget(self).with_on_event(self.note)

    def _answer(self, method: str) -> bool:
        self.log.append(method)
        return self.answers.pop(0)
