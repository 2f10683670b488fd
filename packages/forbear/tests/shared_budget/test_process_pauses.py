"""The times of one process: pauses after failures, payments of surplus, and how long the server was away."""

import pytest

from forbear.core.budget import MICRO
from forbear.core.events import BudgetDegraded, BudgetRestored
from forbear.shared_budget.process import Health, PendingGrant, ProcessShare
from forbear.shared_budget.script import Command, LinkFailed, LocalBucket

WINDOW = 5.0
U = 0.25


class Link:
    """A link to a bucket in this process; while `is_down`, each command fails."""

    def __init__(self) -> None:
        self.bucket = LocalBucket()
        self.deposits: list[int] = []
        self.is_down = False
        self._responses: list[object] = []

    def send(self, command: Command, now: float) -> None:
        """Execute a command."""
        if self.is_down:
            raise LinkFailed("it is down")
        self.deposits.append(int(command[5]))
        self._responses.append(self.bucket.run((*command, b"%d" % round(1000 * now))))

    def receive(self) -> list[object]:
        """Return the responses."""
        responses, self._responses = self._responses, []
        return responses

    def wait(self, seconds: float) -> None:
        """Do nothing: every response is there."""

    def close(self) -> None:
        """Do nothing."""


class Share(ProcessShare):
    """A share whose clock is set by the test, and whose random numbers are all `U`."""

    __slots__ = ("at", "events")

    def __init__(self, link: Link, capacity: int) -> None:
        self.events: list[BudgetDegraded | BudgetRestored] = []
        super().__init__(link, "x", b"k", capacity, MICRO, WINDOW, self.events.append)
        self.at = 100.0

    def now(self) -> float:
        """Return the time that the test has set."""
        return self.at

    def random(self) -> float:
        """Return `U`."""
        return U


@pytest.mark.parametrize(
    ("window", "u", "pauses"),
    [(1000, 0.0, [1, 2, 4, 8, 15, 15]), (1000, 1.0, [2, 4, 8, 16, 30, 30]), (5, 1.0, [2, 4, 4]), (1, 0.0, [1, 1])],
)
def test_pauses_double_up_to_a_share_of_the_window(window: float, u: float, pauses: list[float]) -> None:
    """Half of each is random; a success makes the next one short again."""
    health = Health(window)
    for number, pause in enumerate([*pauses, pauses[0]]):
        if number == len(pauses):
            health.succeeded()
            assert health.until < 0
        assert health.failed(10.0 + number, u) is (number in (0, len(pauses)))
        assert health.until == 10.0 + number + pause
        assert health.since == (10.0 if number < len(pauses) else 10.0 + number)


@pytest.mark.parametrize(
    ("capacity", "after_payment"),
    [(5, WINDOW * (0.5 + U)), (1, 60 * (0.5 + U))],
    ids=["a bucket with room", "a full bucket"],
)
def test_surplus_is_paid_in_at_intervals(capacity: int, after_payment: float) -> None:
    """For the first time within one window, then by how full the bucket was found."""
    link = Link()
    share = Share(link, capacity * MICRO)
    share.put()  # the own token
    share.put()
    first = share.at + U * WINDOW
    for moment, deposits in ((first - 0.01, 0), (first, 1), (first + 0.01, 1)):
        share.at = moment
        share.put()
        assert len(link.deposits) == deposits
    assert link.deposits == [3 * MICRO]
    for moment, deposits in ((first + after_payment - 0.01, 1), (first + after_payment + 0.02, 2)):
        share.at = moment
        share.put()
        assert len(link.deposits) == deposits, moment


def test_one_event_says_how_long_the_server_was_away() -> None:
    """It counts from the first failure, and the pause in the event is that of the first failure."""
    link = Link()
    share = Share(link, 10 * MICRO)
    link.is_down = True
    for moment in (100.0, 102.0):
        share.at = moment
        assert share.ask() is False
    link.is_down = False
    share.at = 110.0
    answer = share.ask()
    assert isinstance(answer, PendingGrant)
    assert answer.look() is True
    assert share.events == [
        BudgetDegraded("shared budget x", "it is down", 1.25),
        BudgetRestored("shared budget x", 10.0),
    ]


@pytest.mark.parametrize(("cost_paid", "granted"), [(True, True), (False, False)])
def test_after_a_refusal_only_enough_credit_asks_again(cost_paid: bool, granted: bool) -> None:
    """A refusal is remembered for 0.5 to 1.5 seconds."""
    link = Link()
    share = Share(link, MICRO)
    first = share.ask()
    assert isinstance(first, PendingGrant)
    assert first.look() is False  # a tenth of a token is in the bucket
    if cost_paid:
        share.put()
    assert share.ask() is granted
    assert len(link.deposits) == 1
    share.at += 0.5 + U - 0.01
    assert share.ask() is False
    share.at += 0.02
    assert isinstance(share.ask(), PendingGrant)


def test_a_late_answer_is_taken_at_the_end() -> None:
    """Without one, an own token grants the retry, and a grant that comes later makes the own token whole."""
    link = Link()
    share = Share(link, 100 * MICRO)
    first, second = share.ask(), share.ask()
    assert isinstance(first, PendingGrant)
    assert isinstance(second, PendingGrant)
    assert first.end() is True
    link.receive()
    third = share.ask()
    assert isinstance(third, PendingGrant)
    link.receive()  # its response is lost
    assert third.wait(0) is None
    assert third.overdue
    assert third.end() is False
    assert third.left
    assert share.ask() is False
