"""Fixtures for pytest, which loads them by an entry point; the first test that uses one imports forbear."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forbear.testing.virtual_time import VirtualTime


@pytest.fixture(name="virtual_time")
def _virtual_time() -> "Generator[VirtualTime]":
    """Skip the waits of this test, with the same jitter every time; the value is the clock (`.slept`, `.elapsed`)."""
    from forbear.testing.virtual_time import virtual_time

    with virtual_time(seed=0) as clock:
        yield clock


@pytest.fixture(name="no_retries")
def _no_retries() -> Generator[None]:
    """Make every call of this test only once, and raise its error at once."""
    from forbear.run.switch import disabled

    with disabled():
        yield
