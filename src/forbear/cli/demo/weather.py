"""The storm: which faults meet a request of the workload, by its name and the seed and by nothing else.

So it is the same for every contender and in whatever order requests arrive. A request meets its faults on its first
attempts; when they are used up it succeeds, so whoever repeats it often enough gets through.
"""

import random

from forbear.cli.demo.ask import KEY, Ask
from forbear.testing.cloud import Fault

MOST = 4
"""How many faults one request meets at most; the contenders have more attempts than that."""

_SHARES = (
    ("unavailable", 0.07),
    ("throttled", 0.05),
    ("reset before", 0.04),
    ("reset after", 0.07),
    ("unavailable after", 0.03),
    ("torn", 0.06),
)
"""How many of all attempts meet which fault; "torn" is half a chunk kept, or half a reply sent."""


def faults(seed: int, ask: Ask) -> list[Fault]:
    """The faults that this request meets, in their order."""
    dice = random.Random(f"{seed} {ask.key}")
    found = list[Fault]()
    while len(found) < MOST and (fault := _draw(dice, ask)) is not None:
        found.append(fault)
    return found


def _draw(dice: random.Random, ask: Ask) -> Fault | None:
    left = dice.random()
    for name, share in _SHARES:
        if left < share:
            return _fault(name, dice, ask)
        left -= share
    return None


def _fault(name: str, dice: random.Random, ask: Ask) -> Fault:
    header = (KEY, ask.key)
    match name:
        case "unavailable":
            return Fault.status(503, header=header)
        case "throttled":
            return Fault.status(429, retry_after=dice.randint(1, 3), header=header)
        case "reset before":
            return Fault.reset(header=header)
        case "reset after":
            return Fault.reset(when="after", header=header)
        case "unavailable after":
            return Fault.status(503, when="after", header=header)
        case _ if ask.step.startswith("chunk"):
            return Fault.partial(dice.randrange(100_000), header=header)
        case _ if ask.method == "DELETE" or ask.step == "start":  # the reply has no body to be torn
            return Fault.close(when="after", header=header)
        case _:
            return Fault.truncate(share=dice.random(), header=header)
