"""Examples may say who listens in the process; after each page it is as ever. A Valkey is there for all pages."""

from collections.abc import Iterator

import pytest

from forbear.testing.valkey import valkey_server
from forbear_testkit.observe.listening import listening_as_ever

__all__ = ["listening_as_ever"]


@pytest.fixture(scope="session")
def valkey() -> Iterator[str]:
    """The Unix socket of a Valkey, for the examples to talk to."""
    with valkey_server() as path:
        yield path
