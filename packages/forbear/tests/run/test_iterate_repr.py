"""The repr of an attempt of a block."""

import pytest

import forbear
from forbear.testing import virtual_time


@pytest.mark.parametrize(("attempts", "of"), [(3, " of 3"), (None, "")])
def test_the_repr_of_an_attempt(attempts: int | None, of: str) -> None:
    """It has the number, the limit, and the wait that is to come."""
    shown = list[str]()
    policy = forbear.retry(OSError, attempts=attempts, timeout=60, backoff=forbear.Constant(1.8))
    with virtual_time():
        for attempt in policy:
            shown.append(repr(attempt))
            with attempt:
                if attempt.number == 1:
                    raise OSError
            shown.append(repr(attempt))
    last = f"<attempt 2{of}>"
    assert shown == [f"<attempt 1{of}>", f"<attempt 2{of}, next wait 1.8 s>", last, last]
