"""The rules of retry budgets that count first attempts, too: Finagle's, Envoy's, and Google SRE's client throttle."""

from forbear.core import check
from forbear.core.budget import MICRO, SHORTEST_WINDOW, SLOTS, Ratio, micro, tokens, turn
from forbear.core.dataclass import dataclass
from forbear.core.record import UserRecord
from forbear.core.verdict import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.verdict import Verdict

_ACCEPTED = (Kind.PERMANENT, Kind.CONFLICT)


class RequestRatio(Ratio):
    """At most `ratio` retries for each first attempt of the last `window` seconds, plus `floor` retries per second.

    This is Finagle's budget: a call pays in when it begins, whatever becomes of it. The rest is as for `Ratio`.

    >>> budget = Budget(RequestRatio(0.2, floor=0))
    >>> calls = [forbear.retry(OSError, budget=budget).call(int) for _ in range(10)]
    >>> [budget.take() for _ in range(3)]
    [True, True, False]
    """

    __slots__ = ()

    def __init__(self, ratio: float = 0.2, window: float = 10, floor: float = 10) -> None:
        super().__init__(ratio, window, floor)

    def admit(self, state: list[int], now: float, u: float) -> bool:
        super().succeeded(state, now, 0)
        return True

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        pass  # the first attempt has paid in


@dataclass(frozen=True, slots=True)
class ActiveShare(UserRecord):
    """At most a `share` of the active calls may be retries, or `least` retries at a time, if that is more (Envoy).

    A call is active while an attempt of it is under way. A granted retry that still waits is one of the retries, but no
    active call. The part after the point does not count: 20 % of 19 calls are 3. The failed attempt itself counts as
    active until the decision. No successes are needed: a retry is granted again once enough retries have ended.

    >>> budget = Budget(ActiveShare(share=0.2, least=1))
    >>> [budget.take() for _ in range(3)]
    [True, False, False]
    """

    share: float = 0.2
    least: int = 3

    def __post_init__(self) -> None:
        tokens("share", self.share, least=0)
        if self.share > 1:
            raise ValueError(f"`share` must be at most 1, which is 100 %, got {check.shown(self.share)}")
        check.at_least("least", self.least, 0, what="a whole number of retries", whole=True)

    def start(self) -> list[int]:
        """Return the counters of a new budget, both 0: the attempts that have not ended, and the retries among them.

        After them come the times, in microseconds, at which the waits of retries end.
        """
        return [0, 0]

    def admit(self, state: list[int], now: float, u: float) -> bool:
        state[0] += 1
        return True

    def release(self, state: list[int], now: float, cost: int) -> None:
        state[0] = max(state[0] - 1, 0)
        if cost:
            state[1] = max(state[1] - 1, 0)

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        moment = micro(now)
        state[2:] = [end for end in state[2:] if end > moment]
        active = max(state[0] - len(state[2:]), 0)
        allowed = max(micro(self.share) * (active + 1) // MICRO, self.least)
        if state[1] >= allowed:
            return None
        state[0] += 1
        state[1] += 1
        return MICRO

    def wait(self, state: list[int], now: float, delay: float) -> None:
        state.append(micro(now + delay))

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        pass  # `release` has counted the end of the attempt


@dataclass(frozen=True, slots=True)
class ClientThrottle(UserRecord):
    """Google SRE's client throttle: it refuses attempts before they are sent, the more the service refuses itself.

    It counts `requests`, and `accepts`: the attempts that succeeded, or failed in a way that no repeat can help. An
    attempt counts when its outcome is known. So it counts as neither while it is under way, nor if it is cancelled.
    Both are of the last `window` seconds, which moves in tenths. Once there are `least` requests, a first attempt is
    refused with the probability max(0, (requests - k * accepts) / (requests + 1)). It is a request then, too. A retry
    is granted while that probability is 0. So after ceil((requests + 1 - k * accepts) / (k - 1)) successes, a retry is
    granted again.

    >>> from forbear.testing import Script
    >>> budget = Budget(ClientThrottle(least=3))
    >>> policy = forbear.retry(OSError, attempts=1, budget=budget, on_give_up=lambda error: type(error).__name__)
    >>> [policy.call(Script(OSError)) for _ in range(6)]
    ['OSError', 'OSError', 'OSError', 'Throttled', 'Throttled', 'Throttled']
    """

    k: float = 2
    window: float = 120
    least: int = 10

    def __post_init__(self) -> None:
        check.positive("k", self.k)
        if micro(self.k) <= MICRO:
            raise ValueError(f"`k` must be more than 1, or the throttle never opens again, got {check.shown(self.k)}")
        check.positive_seconds("window", self.window)
        check.at_least("window", self.window, SHORTEST_WINDOW)
        check.at_least("least", self.least, 0, what="a whole number of requests", whole=True)

    def start(self) -> list[int]:
        """Return the counters of a new budget, all 0.

        They are the number of the newest slot, then ten counts of requests, then ten counts of accepts.
        """
        return [0] * (1 + 2 * SLOTS)

    def admit(self, state: list[int], now: float, u: float) -> bool:
        slot, surplus, requests = self._surplus(state, now)
        if surplus <= u * (requests + 1) * MICRO:
            return True
        state[1 + slot] += 1
        return False

    def failed(self, state: list[int], now: float, verdict: "Verdict") -> None:
        slot = turn(state, now, self.window)
        state[1 + slot] += 1
        if verdict.kind in _ACCEPTED:
            state[1 + SLOTS + slot] += 1

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        # `failed` has counted the failure, and the outcome of the retry will count.
        return MICRO if self._surplus(state, now)[1] <= 0 else None

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        slot = turn(state, now, self.window)
        state[1 + slot] += 1
        state[1 + SLOTS + slot] += 1

    def _surplus(self, state: list[int], now: float) -> tuple[int, int, int]:
        """Return the current slot's index, requests - k * accepts in millionths, and the number of requests.

        While there are fewer requests than `least`, the second is 0: what is refused by then is chance.
        """
        slot = turn(state, now, self.window)
        requests, accepts = sum(state[1 : 1 + SLOTS]), sum(state[1 + SLOTS :])
        return slot, 0 if requests < self.least else requests * MICRO - micro(self.k) * accepts, requests
