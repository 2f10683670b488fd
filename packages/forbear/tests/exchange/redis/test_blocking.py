"""Test how long commands may block, by their arguments."""

from typing import Any

import pytest

from forbear.exchange.redis.blocking import blocking_time


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        (("GET", "k"), 0.0),
        (("BLPOP", "a", "b", 5), 5.0),
        (("BLPOP", "a", "0.5"), 0.5),
        (("BRPOPLPUSH", "a", "b", b"2"), 2.0),
        (("BLMOVE", "a", "b", "LEFT", "RIGHT", 3), 3.0),
        (("BLMPOP", 1.5, 1, "a", "LEFT"), 1.5),
        (("BZPOPMIN", "z", 0), None),
        (("BLMOVEM", "a", "b", "LEFT", "RIGHT", 4, "COUNT", 2, "OBO"), 4.0),
        (("TS.READ", "BLOCK", "$", "BLOCK", 1500, 1), 1.5),
        (("TS.READ", "k", 0, "block", "0", 1, "COUNT", 5), None),
        (("TS.READ", "k", "BLOCK", "COUNT", 5), 0.0),
        (("WAIT", 1, 250), 0.25),
        (("WAITAOF", 1, 0, 0), None),
        (("XREAD", "COUNT", 1, "BLOCK", 1500, "STREAMS", "s", "$"), 1.5),
        (("XREAD", "block", "0", "streams", "s", "$"), None),
        (("XREAD", "STREAMS", "BLOCK", "5"), 0.0),
        (("XREADGROUP", "GROUP", "g", "c", "BLOCK", b"10", "STREAMS", "s", ">"), 0.01),
        (("BLPOP", "a", "soon"), 0.0),
        (("BLPOP", "a", None), 0.0),
        (("XREAD", "BLOCK"), 0.0),
    ],
    ids=str,
)
def test_blocked_for(command: tuple[Any, ...], seconds: float | None) -> None:
    """A timeout of 0 is no limit; the server refuses nonsense at once, so that blocks for 0 seconds."""
    assert blocking_time(command) == seconds
