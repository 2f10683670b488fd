"""The compiled core of the exact engine, second part: attempts and their ends, and the loop over the events."""

from math import inf
from typing import TYPE_CHECKING

from forbear_simulate import kernel as k
from forbear_simulate.kernel import Parameters, Refund, Seen, World, compiled

if TYPE_CHECKING:
    from numpy.random import Generator

_ROUNDING = 1e-6  # seconds
_TOKEN = 1 - 1e-9


@compiled
def end_call(w: World, rules: Parameters, arrivals: "Generator", call: int) -> None:
    """Free the row of a call, and let a closed client think."""
    w.calls[call, k.NEXT] = w.state[k.FREE_CALL]
    w.state[k.FREE_CALL] = call
    if rules.closed:
        k.think(w, rules, arrivals, w.calls[call, k.CLIENT])


@compiled
def elapsed(w: World, rules: Parameters, call: int) -> float:
    """Return the seconds since a call began; a time that misses the timeout by rounding alone is the timeout."""
    seconds = w.clock[k.NOW] - w.started[call]
    return rules.timeout if 0 < rules.timeout - seconds < _ROUNDING else seconds


@compiled
def wait(rules: Parameters, table: "k.Floats", attempt: int, since: float, u: float) -> float:
    """Return what `WaitTable.wait` does for a table of straight rows, -1 to stop."""
    if attempt >= rules.attempts:
        return -1.0
    row = min(attempt, len(table)) - 1
    low, high = table[row, 0], table[row, 1]
    delay = low if low == high else low + (high - low) * u
    left = rules.timeout - since
    if left <= 0 or (delay > left and not rules.clamp):
        return -1.0
    delay = min(delay, left)
    return delay if delay < inf else -1.0


@compiled
def fail(
    w: World, rules: Parameters, arrivals: "Generator", waits: "Generator", call: int, throttled: bool, timed_out: bool
) -> None:
    """Decide about a failed attempt: enter the next one, or end the call."""
    row = w.calls[call]
    delay = wait(rules, w.waits, row[k.ATTEMPT], elapsed(w, rules, call), waits.random())
    if delay >= 0 and rules.budget:
        tokens = w.tokens[row[k.CLIENT] // rules.group]
        cost = k.take(Refund(True), tokens, w.clock[k.NOW], Seen(throttled, timed_out))
        if cost is None:
            k.count(w, rules, k.BUDGET_REFUSALS)
            delay = -1.0
        else:
            row[k.COST] = cost
    if delay < 0:
        k.count(w, rules, k.GAVE_UP)
        end_call(w, rules, arrivals, call)
    else:
        k.at(w, rules, w.clock[k.NOW] + delay, k.SEND, call, 0)


@compiled
def succeed(w: World, rules: Parameters, refund: Refund, arrivals: "Generator", call: int) -> None:
    """End a call with a success."""
    k.count(w, rules, k.SUCCESSES)
    w.delays[w.state[k.DELAYS]] = w.clock[k.NOW] - w.started[call]
    w.state[k.DELAYS] += 1
    if rules.budget:
        tokens = w.tokens[w.calls[call, k.CLIENT] // rules.group]
        k.succeeded(refund, tokens, w.clock[k.NOW], w.calls[call, k.COST])
    end_call(w, rules, arrivals, call)


@compiled
def limited(w: World, rules: Parameters) -> bool:
    """Return whether a request is over the rate limit, and take a token if it is not."""
    clock = w.clock
    clock[k.TOKENS] = min(clock[k.TOKENS] + (clock[k.NOW] - clock[k.FILLED_AT]) * rules.rate_limit, rules.burst)
    clock[k.FILLED_AT] = clock[k.NOW]
    if clock[k.TOKENS] < _TOKEN:
        return True
    clock[k.TOKENS] -= 1
    return False


@compiled
def accept(w: World, rules: Parameters, service: "Generator", request: int) -> bool:
    """Give a request to a worker or into the queue, and return True; False if both are full."""
    s = w.state
    if s[k.BUSY] < rules.workers and k.window(w) != k.HOLD:
        k.serve(w, rules, service, request)
    elif s[k.WAITING] < rules.queue:
        k.count_time(w, rules)
        s[k.WAITING] += 1
        w.requests[request, k.STAGE] = k.QUEUED
        w.requests[request, k.NEXT] = -1
        if s[k.HEAD] < 0:
            s[k.HEAD] = request
        else:
            w.requests[s[k.TAIL], k.NEXT] = request
        s[k.TAIL] = request
    else:
        return False
    return True


@compiled
def send(
    w: World, rules: Parameters, arrivals: "Generator", service: "Generator", waits: "Generator", call: int
) -> None:
    """Send the next attempt of a call."""
    s = w.state
    w.calls[call, k.ATTEMPT] += 1
    k.count(w, rules, k.FIRST if w.calls[call, k.ATTEMPT] == 1 else k.RETRIES)
    kind = k.window(w)
    throttled = kind != k.REFUSE
    if kind != k.REFUSE:
        request = s[k.FREE_REQUEST]
        if request >= 0:
            s[k.FREE_REQUEST] = w.requests[request, k.NEXT]
        else:
            request = s[k.REQUESTS]
            s[k.REQUESTS] += 1
        w.requests[request, k.CALL] = call
        w.requests[request, k.STAGE] = k.OUTSIDE
        life = w.requests[request, k.LIFE]
        if kind == k.DROP or (not (rules.rate_limit > 0 and limited(w, rules)) and accept(w, rules, service, request)):
            limit = rules.attempt_timeout
            if limit < inf:
                left = rules.timeout - elapsed(w, rules, call)
                limit = min(limit, left) if left > 0 else limit
                k.at(w, rules, w.clock[k.NOW] + limit, k.TIME_OUT, request, life)
            return
        k.free_request(w, request)
    k.count(w, rules, k.REFUSALS)
    fail(w, rules, arrivals, waits, call, throttled, False)


@compiled
def begin(
    w: World, rules: Parameters, arrivals: "Generator", service: "Generator", waits: "Generator", client: int
) -> None:
    """Begin a call of a client."""
    k.count(w, rules, k.CALLS)
    s = w.state
    call = s[k.FREE_CALL]
    if call >= 0:
        s[k.FREE_CALL] = w.calls[call, k.NEXT]
    else:
        call = s[k.ALL_CALLS]
        s[k.ALL_CALLS] += 1
    w.calls[call, k.CLIENT], w.calls[call, k.ATTEMPT], w.calls[call, k.COST] = client, 0, 0
    w.started[call] = w.clock[k.NOW]
    send(w, rules, arrivals, service, waits, call)


@compiled
def finish(
    w: World,
    rules: Parameters,
    refund: Refund,
    arrivals: "Generator",
    service: "Generator",
    waits: "Generator",
    request: int,
) -> None:
    """End the work on a request, and respond to a client that still waits."""
    k.count_time(w, rules)
    w.state[k.BUSY] -= 1
    w.requests[request, k.STAGE] = k.OUTSIDE
    k.serve_next(w, rules, service)
    failed = service.random() < rules.failure
    call = w.requests[request, k.CALL]
    if call < 0:
        k.count(w, rules, k.WASTED)
        k.free_request(w, request)
    elif k.window(w) != k.DROP:
        k.free_request(w, request)
        if failed:
            k.count(w, rules, k.FAILURES)
            fail(w, rules, arrivals, waits, call, False, False)
        else:
            succeed(w, rules, refund, arrivals, call)


@compiled
def time_out(
    w: World, rules: Parameters, arrivals: "Generator", service: "Generator", waits: "Generator", request: int
) -> None:
    """End an attempt whose client stops waiting; if abandoned work is dropped, drop it."""
    k.count(w, rules, k.TIMEOUTS)
    call, stage = w.requests[request, k.CALL], w.requests[request, k.STAGE]
    w.requests[request, k.CALL] = -1
    if stage == k.OUTSIDE:
        k.free_request(w, request)
    elif rules.drop_abandoned:
        k.count_time(w, rules)
        w.requests[request, k.STAGE] = k.OUTSIDE
        if stage == k.QUEUED:
            w.state[k.WAITING] -= 1  # its row leaves the queue in its turn
        else:
            w.state[k.BUSY] -= 1
            k.free_request(w, request)
            k.serve_next(w, rules, service)
    fail(w, rules, arrivals, waits, call, False, True)


@compiled
def run(
    w: World, rules: Parameters, refund: Refund, arrivals: "Generator", service: "Generator", waits: "Generator"
) -> bool:
    """Let all events happen and return True, or return False once the tables are too small for the next one."""
    s = w.state
    while True:
        room = 8 + min(s[k.WAITING], rules.workers)
        if (
            s[k.EVENTS] + room > len(w.events)
            or s[k.ALL_CALLS] + 2 > len(w.calls)
            or s[k.REQUESTS] + 2 > len(w.requests)
            or s[k.DELAYS] + 2 > len(w.delays)
        ):
            return False
        event = k.pop(w)
        if event < 0:
            break
        w.clock[k.NOW] = w.times[event]
        kind, subject, life = w.events[event, k.KIND], w.events[event, k.SUBJECT], w.events[event, k.TAG]
        w.events[event, k.NEXT] = s[k.FREE_EVENT]
        s[k.FREE_EVENT] = event
        if kind == k.ARRIVE:
            k.arrive_next(w, rules)
            begin(w, rules, arrivals, service, waits, int(w.clients[subject]))
        elif kind == k.BEGIN:
            begin(w, rules, arrivals, service, waits, subject)
        elif kind == k.SEND:
            send(w, rules, arrivals, service, waits, subject)
        elif kind == k.FINISH:
            if life == w.requests[subject, k.LIFE]:
                finish(w, rules, refund, arrivals, service, waits, subject)
        elif kind == k.TIME_OUT:
            if life == w.requests[subject, k.LIFE] and w.requests[subject, k.CALL] >= 0:
                time_out(w, rules, arrivals, service, waits, subject)
        elif kind == k.OPEN:
            s[k.WINDOW] = subject
        elif s[k.WINDOW] == subject:
            s[k.WINDOW] = -1
            for _ in range(min(rules.workers - s[k.BUSY], s[k.WAITING])):
                k.serve_next(w, rules, service)
    w.clock[k.NOW] = rules.end
    k.count_time(w, rules)
    return True
