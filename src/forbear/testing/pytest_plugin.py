"""Fixtures for pytest, found by its entry point; forbear itself is not imported before a test asks for one."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forbear.testing.virtual_time import VirtualTime


@pytest.fixture(name="virtual_time")
def _virtual_time() -> "Generator[VirtualTime]":
    """No retry of this test waits, and its jitter is the same every time; gives the clock (`.slept`, `.elapsed`)."""
    from forbear.testing.virtual_time import virtual_time

    with virtual_time(seed=0) as clock:
        yield clock


@pytest.fixture(name="no_retries")
def _no_retries() -> Generator[None]:
    """Every call of this test is made once, and its error comes out at once."""
    from forbear.run.switch import disabled

    with disabled():
        yield
