"""The faults that are armed: counts who has passed and decides who is hit; does nothing itself."""

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

from forbear.testing.cloud.faults.checks import number, whole
from forbear.testing.cloud.faults.fault import Fault
from forbear.testing.cloud.faults.matching import Matching, checked_match
from forbear.testing.cloud.http.messages import HttpRequest


class Storm:
    """Draws a fault for each request; made by `storm`.

    The draw depends on the seed, the method, the target and how often that target was asked before, and so not on how
    requests for different things interleave. One logical request (same method and target, and same idempotency token or
    client invocation id if sent) fails at most `limit` times in a row.
    """

    def __init__(self, seed: int, chances: tuple[tuple[float, Fault], ...], limit: int, match: Matching) -> None:
        self._seed = seed
        self._chances = chances
        self._limit = limit
        self._match = checked_match(match)
        self._asked: dict[tuple[str, str], int] = {}
        self._streak: dict[tuple[str, str, str], int] = {}

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """The fault for this request, or None for fair weather."""
        if not self._match.meets(request, operation):
            return None
        place = (request.method, request.target)
        ordinal = self._asked[place] = self._asked.get(place, -1) + 1
        logical = (*place, _caller(request))
        fault = self._roll(f"{self._seed} {request.method} {request.target} {ordinal}")
        if fault is None or self._streak.get(logical, 0) >= self._limit:
            self._streak.pop(logical, None)
            return None
        self._streak[logical] = self._streak.get(logical, 0) + 1
        return fault

    def _roll(self, text: str) -> Fault | None:
        left = random.Random(text).random()
        for chance, fault in self._chances:
            if left < chance:
                return fault
            left -= chance
        return None


def _caller(request: HttpRequest) -> str:
    token = request.headers.get("x-goog-gcs-idempotency-token")
    return token or request.headers.get("x-goog-api-client", "").partition("gccl-invocation-id/")[2]


def storm(
    seed: int,
    *,
    unavailable: float = 0.1,
    throttled: float = 0.05,
    reset_before: float = 0.05,
    reset_after: float = 0.05,
    truncated: float = 0.05,
    retry_after: float = 1,
    limit: int = 3,
    **match: Unpack[Matching],
) -> Storm:
    """Bad weather for `Cloud.fault`; each rate is the share of requests (0 to 1, together at most 1) that meet it.

    503 before the commit, 429 with `retry_after` seconds before it, RST before and after it, and half a response body
    after it. No logical request fails more than `limit` times in a row, so limit + 1 attempts always suffice.
    """
    rates = {
        "unavailable": (unavailable, Fault.status(503)),
        "throttled": (throttled, Fault.status(429, retry_after=retry_after)),
        "reset_before": (reset_before, Fault.reset(when="before")),
        "reset_after": (reset_after, Fault.reset(when="after")),
        "truncated": (truncated, Fault.truncate(share=0.5)),
    }
    for name, (rate, _) in rates.items():
        number(name, rate, maximum=1)
    total = sum(rate for rate, _ in rates.values())
    if total > 1:
        raise ValueError(f"the rates of a storm must add up to at most 1, got {total:g}: lower some of them")
    for name in ("skip", "nth", "times", "probability"):
        if name in match:
            raise TypeError(f"`{name}` does not fit a storm: it has rates and `limit` instead")
    return Storm(whole("seed", seed, minimum=-(2**63)), tuple(rates.values()), whole("limit", limit), match)


def storm_from_json(value: Mapping[str, object]) -> Storm:
    """Read {"action": "storm", "seed": 1, ...} with the parameters of `storm`."""
    given = {name: entry for name, entry in value.items() if name != "action"}
    known = (inspect.signature(storm).parameters.keys() | Matching.__annotations__.keys()) - {"match"}
    for name in given:
        if name not in known:
            raise TypeError(f"`{name}` is not a parameter of 'storm'; it takes {', '.join(sorted(known))}")
    if "seed" not in given:
        raise TypeError("`seed` is missing: a storm needs one, such as 1")
    make: Callable[..., Storm] = storm
    return make(**given)


@dataclass(slots=True)
class _Armed:
    fault: Fault
    seen: int = 0
    fired: int = 0

    def fires(self, request: HttpRequest, operation: str | None, chance: Callable[[], float]) -> bool:
        match = self.fault.match
        if self.spent or not match.meets(request, operation):
            return False
        self.seen += 1
        if self.seen <= match.skip or (match.probability < 1 and chance() >= match.probability):
            return False
        self.fired += 1
        return True

    @property
    def spent(self) -> bool:
        times = self.fault.match.times
        return times is not None and self.fired >= times


class FaultPlan:
    """Faults in the order they were added: the first that fires takes the request, and storms come last."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Disarm everything and start the dice afresh."""
        self._armed: list[_Armed] = []
        self._storms: list[Storm] = []
        self._dice = random.Random(self._seed)

    def add(self, fault: Fault | Storm) -> None:
        """Arm a fault or a storm."""
        if isinstance(fault, Storm):
            self._storms.append(fault)
        else:
            self._armed.append(_Armed(fault))

    @property
    def pending(self) -> int:
        """How many armed faults may still fire; storms are not counted."""
        return sum(not armed.spent for armed in self._armed)

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """The fault that meets this request, if any does; to be asked once per request."""
        for armed in self._armed:
            if armed.fires(request, operation, self._dice.random):
                return armed.fault
        for storm in self._storms:
            if (fault := storm.draw(request, operation)) is not None:
                return fault
        return None
