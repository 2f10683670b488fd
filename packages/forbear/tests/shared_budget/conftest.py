"""A fixture for tests of shared budgets: the server has as long as it needs, however busy the machine is."""

import pytest

from forbear.run import late_grant


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for an answer for ten seconds instead of 5 ms."""
    monkeypatch.setattr(late_grant, "LOOK", 10.0)
