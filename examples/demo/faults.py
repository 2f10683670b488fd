"""Random faults of requests, and losses of messages, which are the same for every contender with the same seed.

The faults of `random_faults` meet the first attempts of a request, at most `MOST` of them.
"""

import random
from collections import Counter

from examples.demo.model import KEY, DemoRequest
from forbear_cloud import Fault

MOST = 4
"""The maximum number of faults that one request meets. The contenders that retry have more attempts than that."""

_RATES = (
    ("unavailable", 0.07),
    ("throttled", 0.05),
    ("reset before", 0.04),
    ("reset after", 0.07),
    ("unavailable after", 0.03),
    ("cut off", 0.06),
)
"""The faults, each with its probability for one attempt, if every earlier attempt of the request has met a fault.

"cut off" stores a part of a chunk, or closes the connection within the response, or before it for a DELETE or start.
"""


def random_faults(seed: int, request: DemoRequest) -> list[Fault]:
    """Return the faults that the request meets: one for each of its first attempts, at most `MOST`, often none.

    They apply only to requests with the key of this request in the header `KEY`.
    """
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
    """Choose messages to lose, each with the probability `share`, by the seed, the kind and the number within the kind.

    So the n-th message of a kind has the same fate for every contender, in whatever order the writers come.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed = seed
        self._share = share
        self._count = Counter[str]()

    def __call__(self, kind: str) -> bool:
        """Count one more message of this kind, and return whether it is lost."""
        self._count[kind] += 1
        return random.Random(f"{self._seed} {kind} {self._count[kind]}").random() < self._share
