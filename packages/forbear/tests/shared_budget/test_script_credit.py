"""The credit of one process: one token of its own, and a surplus that expires."""

import pytest

from forbear.core.budget import MICRO
from forbear.shared_budget.script import Credit


def test_the_first_token_is_kept_and_the_rest_is_surplus() -> None:
    """The own token does not expire, the surplus does, and all of both is handed over once."""
    credit = Credit(5)
    for _ in range(25):
        credit.earn(MICRO // 10, now=100)
    assert (credit.own, credit.total(100)) == (MICRO, 25 * MICRO // 10)
    assert credit.total(1000) == MICRO
    credit.earn(MICRO, 1000)
    assert credit.hand_over(1000) == 2 * MICRO
    assert credit.hand_over(1000) == 0


@pytest.mark.parametrize("earned_at", [100, 100.1, 100.49, 102.75])
def test_surplus_expires_with_the_window_and_never_later(earned_at: float) -> None:
    """A slot that lived longer would break the bound; it may be a tenth of the window short."""
    credit = Credit(5)
    credit.own = MICRO
    credit.earn(MICRO, earned_at)
    assert credit.total(earned_at + 4.4) == 2 * MICRO
    assert credit.total(earned_at + 5) == MICRO


def test_a_process_that_waits_for_a_token_keeps_none_of_its_own() -> None:
    """It would hold two: all it earns meanwhile is surplus."""
    credit = Credit(5)
    credit.earn(MICRO, 0, holds=True)
    assert (credit.own, credit.spend(), credit.hand_over_surplus(0)) == (0, False, MICRO)
    credit.refill()
    credit.refill()
    assert (credit.spend(), credit.spend()) == (True, False)
