"""Decide which fault each request gets: the faults that were added, then random ones by a seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

from forbear_cloud.faults.fault import Fault, call_with_json, fields_of
from forbear_cloud.faults.parameters import FaultMatch, Matching, check_match, number, whole
from forbear_cloud.http.messages import HttpRequest


class RandomFaults:
    """Faults of several kinds at random; `random_faults` makes them.

    The choice depends on the seed, the method and target of the request, and how many requests with the same method and
    target came before. It does not depend on how requests for different targets interleave. One logical request fails
    at most `limit` times in a row. Requests are one logical request if they have the same method and target, and the
    same idempotency token or client invocation id, if any. Example: see `random_faults`.
    """

    def __init__(self, seed: int, chances: tuple[tuple[float, Fault], ...], limit: int, match: FaultMatch) -> None:
        self._seed = seed
        self._chances = chances
        self._limit = limit
        self._match = match
        self._counts: dict[tuple[str, str], int] = {}
        self._streaks: dict[tuple[str, str, str], int] = {}

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """Return the fault for this request, None for no fault.

        Call it once per request, because it counts the requests that match. `operation` is the request's operation id.
        """
        if not self._match.matches(request, operation):
            return None
        target = (request.method, request.target)
        ordinal = self._counts.get(target, 0)
        self._counts[target] = ordinal + 1
        logical = (*target, _caller(request))
        fault = self._choose(f"{self._seed} {request.method} {request.target} {ordinal}")
        if fault is None or self._streaks.get(logical, 0) >= self._limit:
            self._streaks.pop(logical, None)
            return None
        self._streaks[logical] = self._streaks.get(logical, 0) + 1
        return fault

    def _choose(self, text: str) -> Fault | None:
        left = random.Random(text).random()
        for chance, fault in self._chances:
            if left < chance:
                return fault
            left -= chance
        return None


def _caller(request: HttpRequest) -> str:
    token = request.headers.get("x-goog-gcs-idempotency-token")
    return token or request.headers.get("x-goog-api-client", "").partition("gccl-invocation-id/")[2]


def random_faults(
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
) -> RandomFaults:
    """Return random faults for `Cloud.fault`; the same seed and requests give the same faults.

    Each rate is the share of requests that get this fault, from 0 to 1, together at most 1. `unavailable` is a 503,
    `throttled` a 429 with a Retry-After of `retry_after` seconds, `reset_before` an RST; all three come before the
    request takes effect. `reset_after` is an RST after the effect, `truncated` half a response body.

    No logical request (same method, target and idempotency token or invocation id) fails more than `limit` times in a
    row, so limit + 1 attempts suffice. Concurrent requests for one target without a token count as one. Of `Matching`,
    all but `skip`, `nth`, `times` and `probability` choose the requests.

    >>> import requests
    >>> from forbear.clients.requests import RetryAdapter
    >>> cloud.fault(random_faults(seed=1))
    >>> with requests.Session() as session:
    ...     session.mount("http://", RetryAdapter())
    ...     [session.get(cloud.url + "/storage/v1/b/my-bucket").status_code for _ in range(5)], len(cloud.requests) > 5
    ([200, 200, 200, 200, 200], True)
    """
    rates = {
        "unavailable": (unavailable, Fault.status(503)),
        "throttled": (throttled, Fault.status(429, retry_after=retry_after)),
        "reset_before": (reset_before, Fault.reset(when="before")),
        "reset_after": (reset_after, Fault.reset(when="after")),
        "truncated": (truncated, Fault.truncate(share=0.5)),
    }
    total = sum(number(name, rate, maximum=1) for name, (rate, _) in rates.items())
    if total > 1:
        raise ValueError(f"the rates of random faults must add up to at most 1, got {total:g}: lower some of them")
    for name in ("skip", "nth", "times", "probability"):
        if name in match:
            raise TypeError(f"`{name}` does not fit random faults: they have rates and `limit` instead")
    checked = whole("seed", seed, minimum=-(2**63)), tuple(rates.values()), whole("limit", limit)
    return RandomFaults(*checked, check_match(match))


def fault_from_json(value: object) -> Fault | RandomFaults:
    """Read one fault as JSON, as `Fault.from_json` does, or random ones: {"action": "random_faults", "seed": 1, ...}.

    The other names are then the parameters of `random_faults`.
    """
    fields = fields_of(value)
    if fields.get("action") == "random_faults":
        return call_with_json(random_faults, fields)
    return Fault.from_json(fields)


@dataclass(slots=True)
class _Planned:
    """A fault, with the number of matching requests it has `seen` until it was spent, and of those that it met."""

    fault: Fault
    seen: int = 0
    met: int = 0

    def meets(self, request: HttpRequest, operation: str | None, chance: Callable[[], float]) -> bool:
        match = self.fault.match
        if self.spent or not match.matches(request, operation):
            return False
        self.seen += 1
        if self.seen <= match.skip or (match.probability < 1 and chance() >= match.probability):
            return False
        self.met += 1
        return True

    @property
    def spent(self) -> bool:
        times = self.fault.match.times
        return times is not None and self.met >= times


class FaultPlan:
    """The faults of a cloud; `seed` is for those with a probability.

    A request gets the first fault, in the order they were added, that applies to it; each earlier one counts the
    request if it matches. Random faults come last.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Remove all faults, and start the random numbers anew from the seed."""
        self._planned: list[_Planned] = []
        self._random: list[RandomFaults] = []
        self._dice = random.Random(self._seed)

    def add(self, fault: Fault | RandomFaults) -> None:
        """Add a fault after the earlier ones, or random ones, which always come after all single faults."""
        if isinstance(fault, RandomFaults):
            self._random.append(fault)
        else:
            self._planned.append(_Planned(fault))

    @property
    def pending(self) -> int:
        """Return the number of faults that may still occur; one without a limit always counts, random ones never."""
        return sum(not planned.spent for planned in self._planned)

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """Return the fault for this request, None for no fault.

        Call it once per request, because it counts the requests that match. `operation` is the request's operation id.
        """
        for planned in self._planned:
            if planned.meets(request, operation, self._dice.random):
                return planned.fault
        drawn = (faults.draw(request, operation) for faults in self._random)
        return next((fault for fault in drawn if fault is not None), None)
