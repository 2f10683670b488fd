"""Examples may say who listens in the process; after each page it is as ever."""

from tests.observe.conftest import listening_as_ever

__all__ = ["listening_as_ever"]
