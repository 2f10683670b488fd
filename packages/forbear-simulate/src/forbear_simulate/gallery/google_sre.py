"""The book Site Reliability Engineering of Google: client throttling (chapter 21), layers that retry (chapter 22)."""

from collections.abc import Iterator

from forbear import Constant, Limits, Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.gallery.studies import Comparison, Study
from forbear_simulate.scenario.budgets import Throttling
from forbear_simulate.scenario.scenario import Clients, Layer, Scenario, Server, Window

_ONCE = Policy(OSError, Limits(attempts=1, timeout=None))
_CAPACITY = 50
_WINDOW = 30  # seconds


def count_refused(k: float, load: float = 4) -> float:
    """Return how many requests the service refuses for each one that it accepts, at `load` times its capacity."""
    clients = Clients(arrivals="regular", rate=load * _CAPACITY, count=1, policy=_ONCE)
    service = Server(workers=1, time=1 / _CAPACITY, times="constant", queue=20)
    throttle = Throttling(k, _WINDOW, "fleet")
    series = simulate_exact(Scenario(120, 1, clients, service, throttle=throttle), seed=1)
    return series.total("refusals", 60) / series.total("successes", 60)


def attempts_at_the_bottom(layers: int, attempts: int, *, guarded: bool) -> int:
    """Return the attempts of one call at the lowest of `layers`, each of which makes `attempts` with its own policy.

    Real policies call each other. With `guarded`, as is the default of forbear, a policy does not repeat an error on
    which a lower one used up its limits.
    """
    policy = Policy(OSError, Limits(attempts=attempts, timeout=None), Constant(0), retry_exhausted=not guarded)
    made = 0

    def bottom() -> None:
        nonlocal made
        made += 1
        raise ConnectionError("the database is overloaded")

    call = bottom
    for _ in range(layers):
        call = policy(call)
    try:
        call()
    except ConnectionError:
        return made
    raise AssertionError("unreachable: the bottom always fails")


def simulate_attempts(layers: int, attempts: int, *, guarded: bool) -> float:
    """Return the same as `attempts_at_the_bottom` for layers of a scenario, in an outage."""
    policy = Policy(OSError, Limits(attempts=attempts, timeout=None), Constant(0.01))
    herd, outage = Clients(arrivals="herd", count=10, policy=policy), (Window("refuse", 0, 60),)
    chain = (Layer(policy),) * (layers - 1)
    return simulate_exact(Scenario(30, 1, herd, windows=outage, layers=chain, nested_guard=guarded)).amplification


def _throttle() -> Iterator[Comparison]:
    for k, published in ((2.0, 1.0), (1.1, 0.1)):
        name = f"requests refused for each accepted one, K = {k:g}"
        yield Comparison(name, published, count_refused(k), 0.15)


def _layers() -> Iterator[Comparison]:
    for way, attempts in (("real policies", attempts_at_the_bottom), ("simulated", simulate_attempts)):
        yield Comparison(f"attempts on the database, {way}", 64, attempts(3, 4, guarded=False), 0)
        yield Comparison(f"with retries at one layer only, {way}", 4, attempts(3, 4, guarded=True), 0)


SRE_THROTTLE = Study(
    "sre-throttle",
    "Google SRE: a client throttle with K = 2 lets the service refuse one request for each one that it accepts",
    "Site Reliability Engineering (O'Reilly, 2016), chapter 21, Handling Overload, client-side throttling",
    "However large the overload is, clients send about K times as much as the service accepts. A smaller K saves the "
    "service work, and sees later that the service is well again.",
    "They stand in the text of the chapter: one refused request for each accepted one even in large overload, and one "
    "for ten with K = 1.1.",
    f"Calls at four times the capacity and no retries. The throttle looks back {_WINDOW} s here, 120 s in the book, "
    "so that a minute is enough to settle.",
    _throttle,
)

SRE_LAYERS = Study(
    "sre-layers",
    "Google SRE: three layers with three retries each make 64 attempts of one call",
    "Site Reliability Engineering (O'Reilly, 2016), chapter 22, Addressing Cascading Failures",
    "Retries at several layers multiply: 4 * 4 * 4 attempts. Retrying at one layer only makes four.",
    "The chapter has this figure in its text: 64 attempts (4^3) on the database.",
    "Three real policies of forbear around each other and around a call that always fails; and three layers of a "
    "scenario in an outage. Each time without the guard against nested retries, and with it, which is the default.",
    _layers,
)
