"""Commands of any size are judged in linear time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from forbear.services.redis import classify, classify_many
from forbear.services.redis.arguments import LEAST, OPTIONS
from forbear_testkit.growth import grows_linearly

Make = Callable[[int], tuple[Any, ...]]

# fmt: off
SHAPES: dict[str, Make] = {
    "BITFIELD": lambda size: ("BITFIELD", "k", *("SET", "u8", "0", "1") * size),
    "BITFIELD INCRBY": lambda size: ("BITFIELD", "k", *("INCRBY", "u8", "0", "1") * size),
    "SORT": lambda size: ("SORT", "k", *("GET", "p") * size),
    "SORT STORE": lambda size: ("SORT", "k", *("GET", "p*") * size, "STORE", "x" * size),
    "SORT BY": lambda size: ("SORT", "k", "BY", "*" * size, "STORE", "*" * size),
    "CLIENT KILL": lambda size: ("CLIENT", "KILL", *("ID", "1") * size),
    "XREADGROUP": lambda size: ("XREADGROUP", "GROUP", "g", "c", "STREAMS", *("k",) * size, *("1-1",) * size),
    "XCLAIM": lambda size: ("XCLAIM", "k", "g", "c", "0", *("1-1",) * size, "JUSTID"),
    "XADD": lambda size: ("XADD", "k", "1-1", *("f", "v") * size),
    "ZUNIONSTORE": lambda size: ("ZUNIONSTORE", "d", f"{size}", *("s",) * size),
    "TDIGEST.MERGE": lambda size: ("TDIGEST.MERGE", "d", f"{size}", *("s",) * size, "OVERRIDE"),
    "TS.MADD": lambda size: ("TS.MADD", *("k", "1", "1") * size),
    "MSETEX": lambda size: ("MSETEX", f"{size}", *("k", "v") * size, "EX", "1"),
    "BITOP": lambda size: ("BITOP", "AND", "d", *("s",) * size),
    "LREM": lambda size: ("LREM", "k", "0" * size, "v"),
    "LTRIM": lambda size: ("LTRIM", "k", "9" * size, "-1"),
    "an id": lambda size: ("XADD", "k", f"{'9' * size}-{'9' * size}", "f", "v"),
    "a name": lambda size: ("A" * size,),
    "a name of words": lambda size: ("A " * size,),
    "EVAL": lambda size: ("EVAL", "return 1" * size, f"{size}", *("k",) * size),
}
# fmt: on


@pytest.mark.parametrize("shape", SHAPES)
def test_one_command(shape: str) -> None:
    """Whatever its arguments repeat."""
    assert grows_linearly(SHAPES[shape], classify, 500)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(LEAST))
def test_every_option_over_and_over(name: str) -> None:
    """On every command that reads its arguments, each of its options and one that it lacks."""
    least = [*name.split(" "), *["1"] * LEAST[name]]
    for option in ("LACKING", *(OPTIONS[name].names if name in OPTIONS else ())):
        for values in range(4):
            unit = (option, *["1"] * values)
            assert grows_linearly(partial(_repeated, least, unit), classify, 250)


def _repeated(least: list[str], unit: tuple[str, ...], size: int) -> tuple[str, ...]:
    return (*least, *unit * size)


# fmt: off
BATCHES: dict[str, Make] = {
    "sets": lambda size: tuple(("SET", f"k{number}", "v") for number in range(size)),
    "one key": lambda size: (("COPY", "a", "b", "REPLACE"), *(("SET", "a", "1"),) * size),
    "copies": lambda size: tuple(("COPY", f"a{number}", f"a{number + 1}", "REPLACE") for number in range(size)),
    "transactions": lambda size: (("MULTI",), ("INCR", "k"), ("EXEC",)) * size,
    "no end": lambda size: (("WATCH", "k"), ("MULTI",), *(("INCR", "k"),) * size),
    "many keys": lambda size: (("DEL", *map(str, range(size))), ("MSETNX", *map(str, range(2 * size)))),
}
# fmt: on


@pytest.mark.parametrize("batch", BATCHES)
def test_many_commands(batch: str) -> None:
    """However they share their keys."""
    assert grows_linearly(BATCHES[batch], classify_many, 50)
