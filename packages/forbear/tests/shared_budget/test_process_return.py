"""The way back: from a server's restart, a lost bucket, and a process that ends with credit."""

from collections.abc import Generator
from itertools import count

import pytest

from forbear.core.budget import MICRO, micro
from forbear.core.events import BudgetDegraded, BudgetRestored
from forbear.shared_budget.budget import SharedBudget
from forbear.shared_budget.process import PendingGrant
from forbear.testing.valkey import valkey_server
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.shared_budget.fleet import Fleet, Server, retried, running_server

PROCESSES = 30
_names = count()


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    """Run one server for all tests of this module."""
    with running_server() as running:
        yield running


@pytest.mark.parametrize("away", [0.5, 7, 300])
@pytest.mark.parametrize("window", [2, 5, 20])
def test_all_processes_are_back_within_one_window(server: Server, window: float, away: float) -> None:
    """However long the server was away: each process asks again, and notes that it is back."""
    with virtual_time(seed=1) as clock:
        fleet = Fleet(server, f"back{next(_names)}", window=window)
        shares = [fleet.make() for _ in range(PROCESSES)]

        def live(seconds: float) -> None:
            end = clock.elapsed + seconds
            while clock.elapsed < end:
                for share in shares:
                    retried(share)
                clock.advance(0.2)

        live(1)
        server.is_down = True
        live(away + 2)  # a refusal is remembered for at most 1.5 s
        assert [type(event) for event in fleet.news] == [BudgetDegraded] * PROCESSES
        server.is_down = False
        live(window)
    assert [type(event) for event in fleet.news[PROCESSES:]] == [BudgetRestored] * PROCESSES


def test_a_bucket_that_was_lost_is_filled_again(server: Server) -> None:
    """Processes that noticed the loss pay their surplus into the new bucket soon, and do not wait for a minute."""
    with virtual_time(seed=1) as clock:
        fleet = Fleet(server, f"lost{next(_names)}", capacity=40)
        shares = [fleet.make() for _ in range(8)]

        def succeed(seconds: float) -> None:
            for _ in range(round(seconds * 10)):
                clock.advance(0.1)
                for share in shares:
                    share.put()

        succeed(30)
        assert fleet.level() > 0.8 * micro(40)
        server.is_down = True
        for share in shares:
            while retried(share):
                pass  # it uses its own token, and notices that the server is away
        succeed(2)
        server.run(b"DEL", fleet.key)
        server.is_down = False
        succeed(10)
        assert fleet.level() > 0.8 * micro(40)


@pytest.mark.parametrize("successes", [1, 9, 30])
def test_a_process_that_ends_pays_in_all_it_has(server: Server, successes: int) -> None:
    """To the millionth, own token and surplus alike; without credit it sends nothing."""
    with virtual_time(seed=1):
        fleet = Fleet(server, f"all{next(_names)}")
        share = fleet.make()
        assert share.pay_in() is None
        for _ in range(successes):
            share.put()
        assert share.pay_in() is not None
        assert fleet.level() == micro(1 + successes / 10)
        assert share.pay_in() is None


def test_a_late_grant_is_paid_in_at_the_end(server: Server) -> None:
    """The process waits for it, as long as there is time; the bucket has its token again."""
    with virtual_time(seed=1) as clock:
        fleet = Fleet(server, f"late{next(_names)}")
        share = fleet.make()
        server.latency = 0.05
        answer = share.ask()
        assert isinstance(answer, PendingGrant)
        assert answer.wait(0) is None
        assert not answer.end()
        assert (share.collect(), fleet.level()) == (True, 0)
        clock.advance(0.05)
        assert not share.collect()
        assert share.pay_in() is not None
        assert fleet.level() == MICRO


def test_credit_is_not_lost_while_an_answer_is_overdue(server: Server) -> None:
    """A process that goes on keeps its credit then, and one that ends sends it all the same."""
    with virtual_time(seed=1):
        fleet = Fleet(server, f"overdue{next(_names)}")
        share = fleet.make()
        server.latency = 0.05
        answer = share.ask()
        assert isinstance(answer, PendingGrant)
        assert answer.wait(0) is None
        for _ in range(5):
            share.put()
        assert share.pay_in() is None
        assert share.credit.total(0) == MICRO // 2
        assert share.pay_in(last=True) is not None
        assert fleet.level() == MICRO // 2


def test_a_budget_waits_for_what_it_is_owed(patient: None) -> None:
    """A run was cancelled before its answer came: `pay_in` gives the granted token back."""
    with valkey_server() as path:
        budget = SharedBudget(f"unix://{path}", "owed", capacity=20)
        answer = budget.ask()
        assert isinstance(answer, PendingGrant)
        answer.give_up()
        budget.pay_in()
        assert [budget.take() for _ in range(3)] == [True, True, False]
        budget._share.close()
