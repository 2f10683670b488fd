"""A fixture: whoever listens to the process is back in place after each test."""

from collections.abc import Iterator

import pytest

from forbear.observe import default_listeners
from forbear.run import listeners


@pytest.fixture(autouse=True)
def listening_as_ever() -> Iterator[None]:
    """The default."""
    yield
    listeners.set_process_listeners(default_listeners)
