"""Export a policy to C++ (google-cloud-cpp): the clients of Cloud Storage, IAM, Memorystore and Resource Manager.

They share their waits. Each decides by a list of its own which calls are safe to repeat.
"""

from forbear.export.outline import Exported, Outline, outline_storage
from forbear.export.rpcs import as_snake, milliseconds, outline_clients
from forbear.policy import Policy
from forbear.text.duration import show

_SOURCE = "google-cloud-cpp, backoff_policy.cc: `current_delay_end_ *= scaling_`"
_ERRORS = "google-cloud-cpp, cloud_redis_retry_traits.h: `status.code() != StatusCode::kUnavailable`"


def cpp(policy: Policy) -> Exported[str]:
    """Return C++ that makes a `gcs::Client` called `client`, with the strict list of calls. Example: see `source`."""
    outline = outline_storage(policy)
    backoff = _backoff(outline)
    limit = _limit(outline)
    outline.has_usual_statuses()
    outline.knows_idempotent_calls()
    return outline.text(
        '#include "google/cloud/storage/client.h"',
        "#include <chrono>",
        "",
        "namespace gcs = ::google::cloud::storage;",
        "",
        "auto client = gcs::Client(",
        "    google::cloud::Options{}",
        "        .set<gcs::RetryPolicyOption>(",
        f"            gcs::{limit}.clone())",
        "        .set<gcs::BackoffPolicyOption>(",
        "            gcs::ExponentialBackoffPolicy(",
        *(f"                {part}" for part in backoff),
        "                .clone())",
        "        .set<gcs::IdempotencyPolicyOption>(",
        "            gcs::StrictIdempotencyPolicy().clone()));",
    )


def gax_cpp(policy: Policy) -> Exported[str]:
    """Return C++ with functions that make `Options` of IAM, Memorystore or Resource Manager. Example: see `source`."""
    outline, clients = outline_clients(policy, "cpp")
    backoff = _backoff(outline)
    limit = _limit(outline)
    outline.warns("errors", f"UNAVAILABLE and no other code is repeated ({_ERRORS})")
    outline.warns(
        "safety", "by the client's own list of idempotent calls: reads, credentials, and SetIamPolicy with an etag"
    )
    outline.warns("versions", "the clients are those of today; remove any that your version of the library lacks")
    lines = ["namespace gc = ::google::cloud;"]
    headers = ['#include "google/cloud/backoff_policy.h"', '#include "google/cloud/options.h"']
    for client in clients:
        space = f"gc::{client.home.replace('/', '_')}::{client.name}"
        headers.append(f'#include "google/cloud/{client.home}/{as_snake(client.name)}_options.h"')
        lines += [
            "",
            f"gc::Options {client.name}Options() {{",
            "  return gc::Options{}",
            f"      .set<{space}RetryPolicyOption>(",
            f"          {space}{limit}.clone())",
            f"      .set<{space}BackoffPolicyOption>(",
            "          gc::ExponentialBackoffPolicy(",
            *(f"              {part}" for part in backoff),
            "              .clone());",
            "}",
        ]
    return outline.text(*sorted(headers), "#include <chrono>", "", *lines)


def _limit(outline: Outline) -> str:
    """Return the policy that limits a call, without its namespace: in time if there is a timeout, else in errors."""
    if outline.timeout is None:
        return f"LimitedErrorCountRetryPolicy({outline.count_retries()})"
    outline.says("timeout")
    outline.differs("attempts", "no limit on attempts beside the timeout")
    return f"LimitedTimeRetryPolicy({_duration(outline.timeout)})"


def _backoff(outline: Outline) -> list[str]:
    """Return the arguments of a backoff and the closing bracket, and record what the waits become.

    The client draws a wait between a lower end and that end times the factor; both grow by the factor.
    """
    waits = outline.mean_waits
    factor = max(waits.multiplier, 1.01)
    shortest = 2 * waits.initial / (1 + factor)
    longest = max(outline.waits.longest, shortest)
    outline.waits_become([_mean(shortest * factor**n, factor, longest) for n in range(outline.shown_waits)], _SOURCE)
    if outline.waits.jitter == "equal" and factor == 2:
        outline.says("jitter")
    ends = f"{show(round(shortest, 3))} to {show(round(shortest * factor, 3))}"
    outline.differs("jitter", f"a wait is drawn from {ends}, and so on ({_SOURCE})")
    return [f"{_duration(shortest)},", f"{_duration(longest)},", f"{factor!r})"]


def _mean(lower: float, factor: float, longest: float) -> float:
    """Return the mean wait in seconds that the client draws from a window; the last one ends at the longest wait."""
    return longest * (1 + 1 / factor) / 2 if lower * factor >= longest else lower * (1 + factor) / 2


def _duration(seconds: float) -> str:
    return f"std::chrono::milliseconds({milliseconds(seconds)})"
