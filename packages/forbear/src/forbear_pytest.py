"""Fixtures for pytest, which loads them by an entry point; the first test that uses one imports forbear."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forbear.testing.virtual_clock import VirtualTime


@pytest.fixture(name="virtual_time")
def _virtual_time() -> "Generator[VirtualTime]":
    """Replace the waits between attempts in this test by moves of a virtual clock, with the same jitter every time.

    The value is the clock (`.slept`, `.elapsed`).
    """
    from forbear.testing.virtual_clock import virtual_time

    with virtual_time(seed=0) as clock:
        yield clock


@pytest.fixture(name="no_retries")
def _no_retries() -> Generator[None]:
    """Turn all retries off in this test: every call is made once, and its error is raised at once."""
    from forbear.run.switch import disabled

    with disabled():
        yield
