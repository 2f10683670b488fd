"""Marc Brooker's posts of 2022: the token bucket against plain retries, and what backoff is for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forbear import Constant, Exponential, Limits, Policy
from forbear.budgets import TokenBucket
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.gallery.studies import Comparison, Study
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Scenario, Server

if TYPE_CHECKING:
    from forbear.policies import Backoff

_AMPLE = 200  # workers: nothing ever waits for one
_THREE = Limits(attempts=4, timeout=None)
_RARE, _FREQUENT = 0.01, 0.5


def failing(share: float, *, bucket: bool) -> tuple[float, float]:
    """Return the attempts for each call, and the share of calls that succeed, of a service that fails this `share`.

    Clients retry three times, with a `bucket`, which they share, only while that grants it. The first 20 s do not
    count, so that a full bucket is not seen.
    """
    clients = Clients(rate=60, policy=Policy(OSError, _THREE, Constant(0)))
    service = Server(workers=_AMPLE, time=0.001, failure=share)
    budget = ClientBudget(TokenBucket(10, 0.1), "fleet") if bucket else None
    series = simulate_exact(Scenario(80, 1, clients, service, budget=budget), seed=1)
    calls = series.total("first_attempts", 20)
    return 1 + series.total("retries", 20) / calls, series.total("successes", 20) / calls


def overload(arrivals: str, backoff: "Backoff") -> float:
    """Return the attempts per second at a service that can do 50 per second, under a lasting overload.

    "poisson" clients call 100 times per second in all. 100 "closed" clients think for a second between their calls.
    """
    policy = Policy(OSError, Limits(attempts=3, timeout=None), backoff)
    clients = Clients(arrivals=arrivals, rate=100, count=100, think_time=1, policy=policy)
    series = simulate_exact(Scenario(70, 1, clients, Server(workers=5, time=0.1, queue=0)), seed=1)
    return series.mean("first_attempts", 20) + series.mean("retries", 20)


def _bucket() -> Iterator[Comparison]:
    load, _ = failing(1, bucket=False)
    yield Comparison("load at 100 % failures, three retries", 4, load, 0.01)
    load, _ = failing(1, bucket=True)
    yield Comparison("load at 100 % failures, with the bucket", 1.1, load, 0.01, relation="at most")
    load, _ = failing(_FREQUENT, bucket=True)
    yield Comparison(f"load at {_FREQUENT:.0%} failures, with the bucket", 1.1, load, 0.01, relation="at most")
    (_, plain), (_, saving) = failing(_RARE, bucket=False), failing(_RARE, bucket=True)
    yield Comparison(f"successes at {_RARE:.0%} failures, bucket against three retries", 1, saving / plain, 0.001)


def _backoff() -> Iterator[Comparison]:
    soon, later = Constant(0.5), Exponential(2, 2, 16)
    open_load = overload("poisson", later) / overload("poisson", soon)
    yield Comparison("load with backoff against a short wait, open clients", 1, open_load, 0.03)
    closed_load = overload("closed", later) / overload("closed", soon)
    yield Comparison("load with backoff against a short wait, closed clients", 1, closed_load, 0, relation="at most")
    yield Comparison("the same, closed against open clients", 0.75, closed_load / open_load, 0, relation="at most")


BROOKER_BUCKET = Study(
    "brooker-2022-bucket",
    "Brooker 2022: a token bucket keeps the retries that help, and drops those that hurt",
    "M. Brooker: Fixing retries with token buckets and circuit breakers, brooker.co.za, 2022-02-28",
    "With few failures, the bucket retries as often as a plain policy of three retries. With many, it adds at most a "
    "tenth of a retry to each call, where the plain policy makes four times the load.",
    "They stand in the text of the post. At 100 % failures, N retries make 1 + N times the work. With deposits of 0.1, "
    "the bucket is like N retries well below 10 % failures, and like 0.1 retries well above. Its plots have no "
    "numbers that we could read.",
    "Open calls, a share of which fails at random, three retries at once. One bucket of 10 tokens, deposit 0.1. "
    "Figures begin after 20 s, when the first tokens are used up.",
    _bucket,
)

BROOKER_BACKOFF = Study(
    "brooker-2022-backoff",
    "Brooker 2022: in a lasting overload, backoff helps with closed clients only",
    "M. Brooker: What is Backoff For?, brooker.co.za, 2022-08-11",
    "Backoff spreads a short spike. In the long run it helps only if it reduces the work: clients that wait for the "
    "end of their call then call less often. Independent clients do not.",
    "The post states the relation, without numbers: nearly no effect for many independent clients, a large one for a "
    "bounded number of serial ones. The limits beside our figures are our own.",
    "Twice as many calls as the service can do, and two retries, always after 0.5 s or with full jitter from 2 s on. "
    "Open: Poisson calls. Closed: 100 clients that think for a second between their calls.",
    _backoff,
)
