"""Random faults, which depend on the seed and on names only: they are the same for every contender, in any order.

They meet the first attempts of a request, so repeating it often enough always succeeds.
"""

import random
from collections import Counter

from forbear.cli.demo.model import KEY, DemoRequest
from forbear.testing.cloud import Fault

MOST = 4
"""The maximum number of faults that one request meets. The contenders have more attempts than that."""

_RATES = (
    ("unavailable", 0.07),
    ("throttled", 0.05),
    ("reset before", 0.04),
    ("reset after", 0.07),
    ("unavailable after", 0.03),
    ("cut off", 0.06),
)
"""The share of all attempts that meet a fault. "cut off" stores half a chunk, or sends half a response."""


def random_faults(seed: int, request: DemoRequest) -> list[Fault]:
    """Return the faults that the request meets, in their order."""
    dice = random.Random(f"{seed} {request.key}")
    faults = list[Fault]()
    while len(faults) < MOST and (fault := _draw(dice, request)) is not None:
        faults.append(fault)
    return faults


def _draw(dice: random.Random, request: DemoRequest) -> Fault | None:
    number = dice.random()
    for name, rate in _RATES:
        if number < rate:
            return _fault(name, dice, request)
        number -= rate
    return None


def _fault(name: str, dice: random.Random, request: DemoRequest) -> Fault:
    header = (KEY, request.key)
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
        case _ if request.step.startswith("chunk"):
            return Fault.partial(dice.randrange(100_000), header=header)
        case _ if request.method == "DELETE" or request.step == "start":  # the response has no body to cut
            return Fault.close(when="after", header=header)
        case _:
            return Fault.truncate(share=dice.random(), header=header)


class RandomLosses:
    """Choose messages to lose: a share of each kind, which depends on the seed and the message's number in its kind.

    So every contender loses the same share, in whatever order the writers come.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed = seed
        self._share = share
        self._count = Counter[str]()

    def __call__(self, kind: str) -> bool:
        """Return whether the next message of this kind is lost."""
        self._count[kind] += 1
        return random.Random(f"{self._seed} {kind} {self._count[kind]}").random() < self._share
