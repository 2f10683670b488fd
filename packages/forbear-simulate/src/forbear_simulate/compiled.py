"""The compiled engine: the exact engine for large fleets, about twenty times as fast. It needs numba."""

from math import inf, sqrt
from typing import Any

from forbear import TokenBucket
from forbear_simulate import kernel as k
from forbear_simulate.course import Course
from forbear_simulate.kernel_calls import run
from forbear_simulate.load import RateCurve, expected_calls
from forbear_simulate.scenario import Scenario
from forbear_simulate.waits import WaitTable, exact_table

try:
    import numpy as np
except ImportError as error:
    raise ImportError(
        'the compiled engine of forbear_simulate needs numba; install it with: pip install "forbear-simulate[fast]"'
    ) from error

_EVENTS_PER_BUCKET = 8
_MOST_BUCKETS = 1 << 22
_TIMES = {"exponential": k.EXPONENTIAL, "constant": k.CONSTANT, "lognormal": k.LOGNORMAL}
_KINDS = {"slow": k.SLOW, "refuse": k.REFUSE, "drop": k.DROP, "hold": k.HOLD}


def fits(scenario: Scenario) -> bool:
    """Return whether the compiled engine can simulate a scenario exactly.

    It has no layers, no Retry-After, and no budget but a TokenBucket. The waits must follow from a table without error:
    see `forbear_simulate.waits.exact_table`.
    """
    budget, policy = scenario.budget, scenario.clients.policy
    return (
        not scenario.layers
        and scenario.throttle is None
        and (budget is None or type(budget.rule) is TokenBucket)
        and (scenario.service.rate_limit is None or scenario.service.retry_after is None)
        and exact_table(policy.limits, policy.backoff) is not None
    )


def simulate_compiled(scenario: Scenario, *, seed: int = 0) -> Course:
    """Return the course of a scenario that `fits`; the same seed gives the same course.

    Its random numbers are not those of the plain engine. So the courses of both differ by chance, and are equal where a
    scenario leaves nothing to chance. Raises ValueError for a scenario that does not fit.
    """
    table = exact_table(scenario.clients.policy.limits, scenario.clients.policy.backoff)
    if table is None or not fits(scenario):
        raise ValueError("`scenario` must be one that the compiled engine can simulate exactly; use simulate_exact")
    arrivals, service, waits = (np.random.Generator(np.random.PCG64([seed % 2**63, i])) for i in range(3))
    rules = _rules(scenario)
    world = _world(scenario, rules, table, arrivals)
    budget = scenario.budget.rule if scenario.budget is not None else None
    refund = k.Refund(isinstance(budget, TokenBucket) and budget.refund)
    _enter(world, rules, scenario, arrivals)
    while not run(world, rules, refund, arrivals, service, waits):
        world = _larger(world)
    course = Course(scenario.step, scenario.bins)
    for name, row in zip(k.COUNTED, world.counts, strict=True):
        setattr(course, name, row.tolist())
    course.delays = world.delays[: world.state[k.DELAYS]].tolist()
    return course


def _rules(scenario: Scenario) -> k.Parameters:
    clients, server, budget = scenario.clients, scenario.service, scenario.budget
    limits = clients.policy.limits
    buckets = min(max(2 * expected_calls(scenario) / _EVENTS_PER_BUCKET, 1024), _MOST_BUCKETS)
    return k.Parameters(
        end=float(scenario.duration),
        step=float(scenario.step),
        bucket=scenario.duration / int(buckets),
        workers=server.workers,
        queue=inf if server.queue is None else float(server.queue),
        time=float(server.time),
        times=_TIMES[server.times],
        sigma=float(server.sigma),
        failure=float(server.failure),
        drop_abandoned=server.abandoned == "dropped",
        rate_limit=float(server.rate_limit or 0),
        burst=float(server.burst),
        attempt_timeout=inf if clients.attempt_timeout is None else float(clients.attempt_timeout),
        closed=clients.arrivals == "closed",
        think_time=float(clients.think_time),
        attempts=inf if limits.attempts is None else float(limits.attempts),
        timeout=inf if limits.timeout is None else float(limits.timeout),
        clamp=limits.clamp,
        budget=budget is not None,
        group=1 if budget is None else budget.group(clients.count),
    )


def _world(scenario: Scenario, rules: k.Parameters, table: WaitTable, random: np.random.Generator) -> k.World:
    """Return the state before the first event."""
    clients = scenario.clients
    own = clients.count if clients.arrivals in ("closed", "herd") else 0
    size = max(4 * len(scenario.windows) + own, 4096) + min(rules.workers, 4096)
    arrivals = _arrivals(scenario, random) if not own else np.zeros(0)
    groups = -(-clients.count // rules.group) if rules.budget else 0
    rule: Any = None if scenario.budget is None else scenario.budget.rule
    start = [0] if rule is None else rule.start()
    state = np.zeros(16, np.int64)
    state[[k.FREE_EVENT, k.FREE_CALL, k.FREE_REQUEST, k.HEAD, k.TAIL, k.WINDOW]] = -1
    return k.World(
        state=state,
        clock=np.array([0.0, 0.0, rules.burst, 0.0]),
        events=np.zeros((size, 5), np.int64),
        times=np.zeros(size),
        heap=np.zeros(size, np.int64),
        buckets=np.full(round(rules.end / rules.bucket), -1, np.int64),
        calls=np.zeros((size, 4), np.int64),
        started=np.zeros(size),
        requests=np.zeros((size, 4), np.int64),
        counts=np.zeros((len(k.COUNTED), scenario.bins)),
        delays=np.zeros(int(1.1 * expected_calls(scenario)) + 4096),
        tokens=np.tile(np.array(start, np.int64), (groups, 1)),
        waits=np.array([(row[0], row[-1]) for row in table.rows]),
        windows=np.array([(_KINDS[w.kind], w.factor) for w in scenario.windows], float).reshape(-1, 2),
        arrivals=arrivals,
        clients=random.integers(clients.count, size=len(arrivals)),
    )


def _arrivals(scenario: Scenario, random: np.random.Generator) -> "k.Floats":
    """Return the times of the calls of open clients."""
    clients = scenario.clients
    curve = RateCurve(clients)
    most = curve.expected(scenario.duration)
    if clients.arrivals == "regular":
        numbers = np.arange(int(most) + 2, dtype=float)
    else:
        numbers = np.cumsum(random.standard_exponential(int(most + 10 * sqrt(most)) + 50))
    times, rates, slopes, sums = np.array(curve.lines()).T
    i = np.searchsorted(sums, numbers, side="right") - 1
    rest, rate, slope = numbers - sums[i], rates[i], slopes[i]
    with np.errstate(divide="ignore", invalid="ignore"):  # the formula of RateCurve.time_of
        after = 2 * rest / (rate + np.sqrt(np.maximum(rate * rate + 2 * slope * rest, 0.0)))
    when: k.Floats = times[i] + np.where((rest == 0) & ((rate > 0) | (slope != 0)), 0.0, after)
    when[(rate == 0) & (slope == 0)] = inf
    before: k.Floats = when[when < scenario.duration]
    return before


def _enter(world: k.World, rules: k.Parameters, scenario: Scenario, random: np.random.Generator) -> None:
    """Enter the first events, in the order of the plain engine."""
    for number, window in enumerate(scenario.windows):
        k.at(world, rules, float(window.start), k.OPEN, number, 0)
        k.at(world, rules, float(window.end), k.CLOSE, number, 0)
    arrivals = scenario.clients.arrivals
    if arrivals in ("closed", "herd"):
        k.enter_clients(world, rules, random, scenario.clients.count)
    else:
        k.arrive_next(world, rules)


def _larger(world: k.World) -> k.World:
    """Return the same state with twice the room in the tables that are more than half full."""
    used = {
        k.EVENTS: ("events", "times", "heap"),
        k.ALL_CALLS: ("calls", "started"),
        k.REQUESTS: ("requests",),
        k.DELAYS: ("delays",),
    }
    tables = {
        name: np.concatenate([table, np.zeros_like(table)])
        for number, names in used.items()
        for name in names
        for table in (getattr(world, name),)
        if 2 * world.state[number] > len(table)
    }
    return world._replace(**tables)
