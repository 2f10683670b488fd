"""C++: how to make the Cloud Storage client of google-cloud-cpp retry."""

from forbear.core.decide import show
from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy


def cpp(policy: Policy) -> Exported[str]:
    """Source text that makes a `gcs::Client`; the strict list of what is idempotent, which is not the default."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    # A wait is drawn from a window whose upper end is the lower one times the multiplier.
    shortest = waits.initial / 2 if waits.jitter in ("full", "equal", "decorrelated") else waits.initial
    factor = max(waits.multiplier, 1.01)
    outline.says("backoff")
    if waits.jitter == "equal" and waits.multiplier == 2:
        outline.says("jitter")
    outline.differs(
        "jitter",
        f"jitter={waits.jitter}: a wait is drawn from {show(shortest)} to {show(shortest * factor)}, and so on",
    )
    if outline.timeout is not None:
        limit = f"gcs::LimitedTimeRetryPolicy({_milliseconds(outline.timeout)})"
        outline.says("timeout")
        outline.differs("attempts", f"attempts={outline.attempts}: no limit on attempts beside that in time")
    else:
        limit = f"gcs::LimitedErrorCountRetryPolicy({outline.count()})"
    outline.tells_usual_statuses()
    outline.differs("safety", "safety: by the client's own list of what is idempotent")
    longest = max(waits.maximum, shortest)
    lines = [
        '#include "google/cloud/storage/client.h"',
        "#include <chrono>",
        "",
        "namespace gcs = ::google::cloud::storage;",
        "",
        "auto client = gcs::Client(",
        "    google::cloud::Options{}",
        "        .set<gcs::RetryPolicyOption>(",
        f"            {limit}.clone())",
        "        .set<gcs::BackoffPolicyOption>(",
        "            gcs::ExponentialBackoffPolicy(",
        f"                {_milliseconds(shortest)},",
        f"                {_milliseconds(longest)},",
        f"                {factor!r})",
        "                .clone())",
        "        .set<gcs::IdempotencyPolicyOption>(",
        "            gcs::StrictIdempotencyPolicy().clone()));",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)


def _milliseconds(seconds: float) -> str:
    return f"std::chrono::milliseconds({max(round(seconds * 1000), 1)})"
