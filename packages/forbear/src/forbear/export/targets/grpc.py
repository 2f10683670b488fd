"""Export a policy to gRPC: a service config, which makes any gRPC library retry (gRFC A6).

A config applies to a method, whatever the request: a method that is safe only under a condition is not retried.
"""

import json
from collections.abc import Iterable
from typing import Any

from forbear.core.budget import Throttle
from forbear.export.outline import LEAST, Exported, Outline, duration, outline_requests
from forbear.export.rpcs import Method, safe_methods
from forbear.export.waits import mean_waits
from forbear.grpc import codes
from forbear.grpc.call import is_rpc_service
from forbear.policy import Policy

_MOST_ATTEMPTS = 5  # every implementation cuts larger numbers to this
_MOST_TOKENS = 1000
_LONGEST_SHARE = 1.2  # of a step: its longest wait
_ATTEMPTS_SOURCE = "gRPC core, retry_service_config.cc: `#define MAX_MAX_RETRY_ATTEMPTS 5`"
_WAITS_SOURCE = "gRFC A6: `min(initialBackoff*backoffMultiplier**(n-1), maxBackoff)`"
_JITTER_SOURCE = "gRPC core, retry_filter.h: `#define RETRY_BACKOFF_JITTER 0.2`"


def grpc(policy: Policy, methods: Iterable[str] | None = None) -> Exported[str]:
    """Return a service config in JSON, for the channel option `grpc.service_config`.

    For a service that judges RPCs it lists those that are always safe to repeat, among `methods` if these are given.
    Any other policy applies to `methods`, and with `repeatable=True` by default to all RPCs. Each is a name:
    "google.storage.v2.Storage/GetObject", or "google.storage.v2.Storage" for all of a service. The result is an
    `Exported`, which also lists what is lost. Raises ValueError for a name that the policy's service does not have.

    >>> import json
    >>> config = json.loads(grpc(forbear.retry(OSError, attempts=3), ["helloworld.Greeter/SayHello"]).value)
    >>> config["methodConfig"][0]["retryPolicy"]["maxAttempts"]
    3
    """
    outline = outline_requests(policy)
    outline.says("chunks")  # no call that sends data is repeated
    names = None if methods is None else _check(methods)
    judge: object = policy.service
    service = judge if is_rpc_service(judge) else None
    if service is not None:
        listed = safe_methods(outline, service, names)
        retried = [codes.NAMES[code] for code in sorted(codes.codes_for(outline.statuses))]
        outline.says("errors")
    else:
        listed = [(name, True) for name in sorted(names or [""])]
        retried = ["UNAVAILABLE"]
        outline.differs("errors", "gRPC sees status codes only; UNAVAILABLE is retried")
    retry = _retry(outline, retried)
    if service is None and policy.repeatable is not True:
        if names is not None and policy.repeats_calls:
            outline.says("safety")  # whoever names an RPC says that it may be repeated
        else:
            retry = None
            outline.differs("safety", "only calls that gRPC itself knows were not executed are retried")
    outline.differs("timeout", "also ends a running attempt")
    document: dict[str, Any] = {"methodConfig": _configs(outline, listed, retry)}
    rule = None if policy.budget is None else policy.budget._rule
    outline.differs("budget", "gRPC has another throttle; Budget.grpc() can be exported")
    if isinstance(rule, Throttle):
        tokens, ratio = min(max(round(rule.max_tokens), 1), _MOST_TOKENS), max(round(rule.token_ratio, 3), 0.001)
        document["retryThrottling"] = {"maxTokens": tokens, "tokenRatio": ratio}
        outline.differs("budget", f"maxTokens of {tokens} and tokenRatio of {ratio} instead")
        if (tokens, ratio) == (rule.max_tokens, rule.token_ratio):
            outline.says("budget")
    outline.differs("retry_after", "RetryInfo in the details of a status is not obeyed; grpc-retry-pushback-ms is")
    return Exported(json.dumps(document, indent=2), outline.losses)


def _check(methods: Iterable[str]) -> frozenset[str]:
    if isinstance(methods, str):
        raise TypeError(f"`methods` must be a collection of full names of RPCs or services, got the string {methods!r}")
    names = frozenset(name.removeprefix("/") for name in methods)
    if not names:
        raise ValueError("`methods` must name at least one RPC or service, or be None (all of them), got none")
    return names


def _retry(outline: Outline, retried: list[str]) -> dict[str, Any] | None:
    attempts = outline.attempts
    if attempts is None or attempts > _MOST_ATTEMPTS:
        outline.warns("attempts", f"gRPC makes at most {_MOST_ATTEMPTS} attempts ({_ATTEMPTS_SOURCE})")
        attempts = _MOST_ATTEMPTS
    else:
        outline.says("attempts")
    retries = max(attempts - 1, 1)
    waits = mean_waits(outline.policy.backoff, retries).cap(outline.waits.longest / _LONGEST_SHARE)
    if waits.initial >= LEAST:
        outline.waits_become(waits.steps(retries), _WAITS_SOURCE)
    else:
        outline.differs("backoff", f"at least {LEAST:g} s")
    outline.differs("jitter", f"0.8 to 1.2 times the mean wait instead ({_JITTER_SOURCE})")
    if attempts == 1:
        return None
    return {
        "maxAttempts": attempts,
        "initialBackoff": duration(waits.initial),
        "maxBackoff": duration(waits.maximum),
        "backoffMultiplier": waits.multiplier,
        "retryableStatusCodes": retried,
    }


def _configs(outline: Outline, methods: list[Method], retry: dict[str, Any] | None) -> list[dict[str, Any]]:
    configs: list[dict[str, Any]] = []
    for unary in (True, False):
        names = [_split(name) for name, is_unary in methods if is_unary is unary]
        if not names:
            continue
        config: dict[str, Any] = {"name": names}
        if unary and outline.timeout is not None:
            config["timeout"] = duration(outline.timeout)
        elif not unary:
            outline.warns("timeout of streams", "none, because it would end a long stream that works")
        if retry is not None:
            config["retryPolicy"] = retry
        configs.append(config)
    return configs


def _split(name: str) -> dict[str, str]:
    service, _, method = name.removeprefix("/").partition("/")
    return {key: value for key, value in (("service", service), ("method", method)) if value}
