"""The levels of many equal buckets."""

import pytest

from forbear_simulate.engines.budgets.token_levels import TokenLevels


def test_levels_keep_the_tokens() -> None:
    """Tokens are neither lost nor made between the ends, also by amounts that no level has."""
    levels = TokenLevels(1000, (1, 0.000_37))
    assert levels.take(30, 10.5) == pytest.approx(30)
    levels.add(100, 0.37)
    left = 1000 - 30 * 10.5 + 37
    assert levels.share_above(left - 150) == pytest.approx(1, abs=0.05)
    assert levels.share_above(left + 150) == pytest.approx(0, abs=0.05)
    assert levels.take(0, 1) == 0
