"""In which window each exported policy waits, by the rules of its target."""

import json
import re
from collections.abc import Callable
from typing import Any

from forbear import export
from forbear.policy import Policy

Window = tuple[float, float]


_KNOWN: dict[tuple[str, Policy], list[Window]] = {}


def numbers(target: str, policy: Policy, *names: str) -> list[float]:
    """Return the numbers that follow these names in the text for a target."""
    text = export.source(target, policy).value
    matches = [re.search(rf"{name}[^0-9]*([0-9][0-9.]*)( \* time.Microsecond)?", text) for name in names]
    return [float(each[1]) * (1e-6 if each[2] else 1) for each in matches if each is not None]


def windows(target: str, policy: Policy) -> list[Window]:
    """Return the shortest and longest waits before the first eight retries, by the target's own algorithm."""
    if (target, policy) not in _KNOWN:
        _KNOWN[target, policy] = [WINDOWS[target](policy, n) for n in range(8)]
    return _KNOWN[target, policy]


def full(*names: str, scale: float = 1) -> Callable[[str, Policy, int], Window]:
    """A target that draws from zero to the step."""

    def window(target: str, policy: Policy, n: int) -> Window:
        initial, multiplier, maximum = numbers(target, policy, *names)
        return 0, min(initial * scale * multiplier**n, maximum)

    return window


def go(policy: Policy, n: int) -> Window:
    """gax.Backoff.Pause: from 1 ns to the current step."""
    return full("Initial:", "Multiplier:", "Max:")("go", policy, n)


def java(policy: Policy, n: int) -> Window:
    """ExponentialRetryAlgorithm.createNextAttempt: nextRandomLong of the step, in milliseconds."""
    text = export.java(policy).value
    initial, maximum = (
        float(value) / (1000 if unit == "Millis" else 1)
        for unit, value in re.findall(r"RetryDelayDuration\(Duration.of(Millis|Seconds)\((\d+)", text)
    )
    (multiplier,) = numbers("java", policy, "setRetryDelayMultiplier")
    return 0, min(initial * multiplier**n, maximum)


def google_api_core(policy: Policy, n: int) -> Window:
    """exponential_sleep_generator: random.uniform(0.0, max_delay)."""
    made: Any = export.google_api_core(policy).value
    return 0, min(made._initial * made._multiplier**n, made._maximum)


def envoy(policy: Policy, n: int) -> Window:
    """JitteredExponentialBackOffStrategy::nextBackOffMs: random % backoff, doubled up to the largest."""
    back_off = json.loads(export.envoy(policy).value)["retry_policy"]["retry_back_off"]
    base, maximum = (float(back_off[name].rstrip("s")) for name in ("base_interval", "max_interval"))
    return 0, min(base * 2**n, maximum)


def celery(policy: Policy, n: int) -> Window:
    """get_exponential_backoff_interval: randrange(min(maximum, factor * 2 ** retries) + 1)."""
    options = export.celery(policy).value
    return 0, min(options["retry_backoff_max"], options["retry_backoff"] * 2**n)


def csharp(policy: Policy, n: int) -> Window:
    """RetryTiming.GetDelay: initial times multiplier to the power of failures, no longer than the largest."""
    initial, maximum, multiplier = numbers("csharp", policy, "initialBackoff", "maxBackoff", "backoffMultiplier:")
    wait = min(initial * multiplier**n, maximum)
    return wait, wait


def temporal(policy: Policy, n: int) -> Window:
    """nextBackoffInterval: the same without jitter."""
    made = export.temporal(policy).value["retry_policy"]
    step = made.initial_interval.total_seconds() * made.backoff_coefficient**n
    wait = min(step, made.maximum_interval.total_seconds())
    return wait, wait


def cpp(policy: Policy, n: int) -> Window:
    """ExponentialBackoffPolicy::OnCompletion: windows that follow each other, the last from a factor below the end."""
    text = export.cpp(policy).value
    *_, lower, maximum = (float(value) / 1000 for value in re.findall(r"milliseconds\((\d+)\)", text))
    scaling = float(re.findall(r"^ +([0-9.]+)\)$", text, re.MULTILINE)[0])
    start, end = lower, lower * scaling
    for retry in range(n + 1):
        if end >= maximum:
            start, end = max(maximum / scaling, lower), maximum
        if retry < n:
            start, end = end, end * scaling
    return start, end


def ruby(policy: Policy, n: int) -> Window:
    """Retriable::ExponentialBackoff: the smaller of step and maximum, plus or minus a half."""
    base, maximum, multiplier = numbers("ruby", policy, "base_interval", "max_interval", "multiplier")
    step = min(base * multiplier**n, maximum)
    return step / 2, step * 1.5


def grpc(policy: Policy, n: int) -> Window:
    """gRPC core: the smaller of step and maximum, plus or minus a fifth; four retries."""
    retry = json.loads(export.grpc(policy).value)["methodConfig"][0]["retryPolicy"]
    initial, maximum = (float(retry[name].rstrip("s")) for name in ("initialBackoff", "maxBackoff"))
    step = min(initial * retry["backoffMultiplier"] ** n, maximum)
    return step * 0.8, step * 1.2


def nodejs(policy: Policy, n: int) -> Window:
    """getNextRetryDelay of retry-request: the multiplier to the power of retryNumber, which is 1 first, and jitter."""
    multiplier, maximum = numbers("nodejs", policy, "retryDelayMultiplier", "maxRetryDelay")
    return min(multiplier ** (n + 1), maximum), min(multiplier ** (n + 1) + 1, maximum)


def gcloud(policy: Policy, n: int) -> Window:
    """Retryer._GetTimeToWait: the step, plus up to 1000 ms, no longer than the ceiling; and the first wait of apitools.

    The handler of errors that `set_retry_func` sets calls that of apitools, which sleeps, before the Retryer sleeps.
    """
    base, multiplier, maximum = numbers("gcloud", policy, "base_retry_delay", "multiplier", "max_retry_delay")
    low, high = min(base * multiplier**n, maximum), min(base * multiplier**n + 1, maximum)
    return low + 2 * 0.75, high + 2 * 1.25


def boto(policy: Policy, n: int) -> Window:
    """CalculateWaitForRetry of apitools: 2 to the power of the attempt, from 1, plus or minus a quarter."""
    (maximum,) = numbers("boto", policy, "max_retry_delay")
    return min(0.75 * 2 ** (n + 1), maximum), min(1.25 * 2 ** (n + 1), maximum)


def urllib3(policy: Policy, n: int) -> Window:
    """Retry.get_backoff_time: none at first, then a doubled factor, plus jitter, no longer than the largest."""
    made = export.urllib3(policy).value
    step = made.backoff_factor * 2**n
    return (0, 0) if n == 0 else (min(step, made.backoff_max), min(step + made.backoff_jitter, made.backoff_max))


WINDOWS: dict[str, Callable[[Policy, int], Window]] = {
    one.__name__: one
    for one in (
        boto, celery, cpp, csharp, envoy, gcloud, go, google_api_core, grpc, java, nodejs, ruby, temporal, urllib3
    )
}  # fmt: skip


def means(target: str, policy: Policy) -> list[float]:
    """Return the mean waits; a window that the maximum cuts short is flat there, so its ends do not say its mean."""
    return [(low + high) / 2 for low, high in windows(target, policy)]
