"""The compiled core of the exact engine: the events of `exact` and `service_queue` in the same order, on arrays.

Numba compiles these functions when the first large simulation runs, and keeps the result in its cache. The retry
budget is the code of `forbear.TokenBucket` itself, compiled. Times are in seconds. A call, a request and an event have
the number of a row; -1 is none.
"""

import sys
from collections.abc import Callable
from hashlib import sha256
from math import exp
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from forbear import TokenBucket

try:
    import numba
    import numpy as np
except ImportError as error:
    raise ImportError(
        'the compiled engine of forbear_simulate needs numba; install it with: pip install "forbear-simulate[fast]"'
    ) from error

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

F = TypeVar("F", bound=Callable[..., Any])

COUNTED = ("calls", "first_attempts", "retries", "successes", "failures", "refusals", "timeouts",
           "budget_refusals", "gave_up", "wasted", "in_system", "queued")  # fmt: skip
"""The rows of `World.counts`, by their names in a Course."""
(CALLS, FIRST, RETRIES, SUCCESSES, FAILURES, REFUSALS, TIMEOUTS, BUDGET_REFUSALS, GAVE_UP, WASTED, IN_SYSTEM,
 QUEUED_MEAN) = range(12)  # fmt: skip

ARRIVE, BEGIN, SEND, FINISH, TIME_OUT, OPEN, CLOSE = range(7)  # kinds of events
SLOW, REFUSE, DROP, HOLD, NO_WINDOW = range(5)
EXPONENTIAL, CONSTANT, LOGNORMAL = range(3)
OUTSIDE, QUEUED, SERVED = range(3)  # stages of a request

NEXT, ORDER, KIND, SUBJECT, TAG = range(5)  # columns of events; all tables have NEXT, the next row of a list
_, CLIENT, ATTEMPT, COST = range(4)  # columns of calls
_, CALL, STAGE, LIFE = range(4)  # columns of requests; a row that is used again begins another life

# The whole numbers of the state.
(LAST_ORDER, BUCKET, HEAP_SIZE, EVENTS, FREE_EVENT, ALL_CALLS, FREE_CALL, REQUESTS, FREE_REQUEST, BUSY, WAITING, HEAD,
 TAIL, WINDOW, DELAYS, ARRIVED) = range(16)  # fmt: skip
NOW, COUNTED_TO, TOKENS, FILLED_AT = range(4)  # the numbers of the clock


class Parameters(NamedTuple):
    """The parameters of a simulation. Infinity is no limit, and a rate limit of 0 is none."""

    end: float
    step: float
    bucket: float
    workers: int
    queue: float
    time: float
    times: int
    sigma: float
    failure: float
    drop_abandoned: bool
    rate_limit: float
    burst: float
    attempt_timeout: float
    closed: bool
    think_time: float
    attempts: float
    timeout: float
    clamp: bool
    budget: bool
    group: int


class Refund(NamedTuple):
    """The part of a TokenBucket that its methods read from `self`."""

    refund: bool


class Seen(NamedTuple):
    """The part of a verdict that a TokenBucket reads."""

    throttled: bool
    timed_out: bool


class World(NamedTuple):
    """The state of a simulation: rows of events, calls and requests, and what they have led to."""

    state: "Ints"
    clock: "Floats"
    events: "Ints"
    times: "Floats"
    heap: "Ints"
    buckets: "Ints"
    calls: "Ints"
    started: "Floats"
    requests: "Ints"
    counts: "Floats"
    delays: "Floats"
    tokens: "Ints"
    waits: "Floats"
    windows: "Floats"
    arrivals: "Floats"
    clients: "Ints"


_FORBEAR = Path(str(sys.modules[TokenBucket.__module__].__file__))
_SOURCES = (Path(__file__), Path(__file__).with_name("kernel_calls.py"), _FORBEAR)
_DIGEST = sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:12]


def compiled(function: F) -> F:
    """Compile a function when it is first called, and keep it on disk.

    These functions make no arrays. So they need not count references to them (`_nrt`), which takes most of the time.
    Numba looks only at the function itself to see whether its file in the cache is old, not at those that it calls. So
    the name of that file has a digest of all.
    """
    copy = FunctionType(function.__code__, function.__globals__, function.__name__)
    copy.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
    njit: Any = numba.njit
    return njit(cache=True, error_model="numpy", _nrt=False)(copy)  # type: ignore[no-any-return]


take: Any = compiled(TokenBucket.take)
succeeded: Any = compiled(TokenBucket.succeeded)


@compiled
def _sooner(w: World, one: int, other: int) -> bool:
    if w.times[one] != w.times[other]:
        return bool(w.times[one] < w.times[other])
    return bool(w.events[one, ORDER] < w.events[other, ORDER])


@compiled
def _push(w: World, event: int) -> None:
    """Put an event of the current bucket, or of an earlier time, on the heap."""
    place = w.state[HEAP_SIZE]
    w.state[HEAP_SIZE] += 1
    while place > 0:
        above = (place - 1) // 2
        if not _sooner(w, event, int(w.heap[above])):
            break
        w.heap[place] = w.heap[above]
        place = above
    w.heap[place] = event


@compiled
def pop(w: World) -> int:
    """Take the next event off the heap, from the next bucket that has any; -1 if there is none."""
    s = w.state
    while s[HEAP_SIZE] == 0:
        s[BUCKET] += 1
        if s[BUCKET] >= len(w.buckets):
            return -1
        event = int(w.buckets[s[BUCKET]])
        while event >= 0:
            _push(w, event)
            event = int(w.events[event, NEXT])
    first, s[HEAP_SIZE] = w.heap[0], s[HEAP_SIZE] - 1
    size, moved, place = s[HEAP_SIZE], int(w.heap[s[HEAP_SIZE]]), 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _sooner(w, int(w.heap[below + 1]), int(w.heap[below])):
            below += 1
        if not _sooner(w, int(w.heap[below]), moved):
            break
        w.heap[place] = w.heap[below]
        place = below
    w.heap[place] = moved
    return int(first)


@compiled
def at(w: World, rules: Parameters, time: float, kind: int, subject: int, tag: int) -> None:
    """Enter an event; one at or after the end is left out."""
    if not time < rules.end:
        return
    s = w.state
    event = s[FREE_EVENT]
    if event >= 0:
        s[FREE_EVENT] = w.events[event, NEXT]
    else:
        event = s[EVENTS]
        s[EVENTS] += 1
    s[LAST_ORDER] += 1
    w.times[event] = time
    row = w.events[event]
    row[ORDER], row[KIND], row[SUBJECT], row[TAG] = s[LAST_ORDER], kind, subject, tag
    bucket = min(int(time / rules.bucket), len(w.buckets) - 1)
    if bucket <= s[BUCKET]:
        _push(w, event)
    else:
        row[NEXT] = w.buckets[bucket]
        w.buckets[bucket] = event


@compiled
def count(w: World, rules: Parameters, name: int) -> None:
    """Count one in the bin of the present."""
    w.counts[name, min(int(w.clock[NOW] / rules.step), w.counts.shape[1] - 1)] += 1


@compiled
def think(w: World, rules: Parameters, arrivals: "Generator", client: int) -> None:
    """Enter the next call of a closed client."""
    at(w, rules, w.clock[NOW] + arrivals.standard_exponential() * rules.think_time, BEGIN, client, 0)


@compiled
def arrive_next(w: World, rules: Parameters) -> None:
    """Enter the next arrival, if there is one."""
    n = w.state[ARRIVED]
    if n < len(w.arrivals):
        w.state[ARRIVED] += 1
        at(w, rules, float(w.arrivals[n]), ARRIVE, n, 0)


@compiled
def enter_clients(w: World, rules: Parameters, arrivals: "Generator", count: int) -> None:
    """Let closed clients think, and a herd begin at once."""
    for client in range(count):
        if rules.closed:
            think(w, rules, arrivals, client)
        else:
            at(w, rules, 0.0, BEGIN, client, 0)


@compiled
def window(w: World) -> int:
    """Return the kind of the open window."""
    return NO_WINDOW if w.state[WINDOW] < 0 else int(w.windows[w.state[WINDOW], 0])


@compiled
def count_time(w: World, rules: Parameters) -> None:
    """Add the time since the last change to the means of the bins."""
    now, start, step = w.clock[NOW], w.clock[COUNTED_TO], rules.step
    while start < now:
        i = int(start / step)
        end = min((i + 1) * step, now)
        if end <= start:  # the rounding of a bin's edge
            i, end = i + 1, min((i + 2) * step, now)
        if i < w.counts.shape[1]:
            part = (end - start) / step
            w.counts[QUEUED_MEAN, i] += w.state[WAITING] * part
            w.counts[IN_SYSTEM, i] += (w.state[WAITING] + w.state[BUSY]) * part
        start = end
    w.clock[COUNTED_TO] = now


@compiled
def free_request(w: World, request: int) -> None:
    """Let the row of a request begin another life."""
    w.requests[request, LIFE] += 1
    w.requests[request, NEXT] = w.state[FREE_REQUEST]
    w.state[FREE_REQUEST] = request


@compiled
def serve(w: World, rules: Parameters, service: "Generator", request: int) -> None:
    """Give a worker to a request."""
    count_time(w, rules)
    w.state[BUSY] += 1
    w.requests[request, STAGE] = SERVED
    time = rules.time
    if rules.times == EXPONENTIAL:
        time *= service.standard_exponential()
    elif rules.times == LOGNORMAL:
        time *= exp(service.standard_normal() * rules.sigma - rules.sigma * rules.sigma / 2)
    if window(w) == SLOW:
        time *= w.windows[w.state[WINDOW], 1]
    at(w, rules, w.clock[NOW] + time, FINISH, request, w.requests[request, LIFE])


@compiled
def serve_next(w: World, rules: Parameters, service: "Generator") -> None:
    """Give a free worker to the request that has waited longest; drop the rows of those that left the queue."""
    if window(w) == HOLD:
        return
    s = w.state
    while s[HEAD] >= 0:
        request = s[HEAD]
        s[HEAD] = w.requests[request, NEXT]
        if w.requests[request, STAGE] == QUEUED:
            count_time(w, rules)
            s[WAITING] -= 1
            serve(w, rules, service, request)
            return
        free_request(w, request)
