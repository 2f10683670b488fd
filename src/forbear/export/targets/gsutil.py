"""gsutil and gcloud: lines of their configuration files. Whole seconds only."""

from math import ceil

from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy


def boto(policy: Policy) -> Exported[str]:
    """The lines of a .boto file for gsutil: `num_retries` and `max_retry_delay` of section [Boto]."""
    outline = Outline.for_storage(policy)
    retries = outline.count()
    maximum = ceil(outline.waits.maximum)
    outline.differs("backoff", f"waits of {outline.waits}: from 1 or 2 s, doubled, up to {maximum} s")
    outline.differs(
        "jitter", f"jitter={outline.waits.jitter}: a quarter up or down below the longest wait (XML API: full)"
    )
    outline.warns(
        "attempts", "the JSON API counts attempts, so it makes one retry fewer; progress starts the count anew"
    )
    lines = ["[Boto]", f"num_retries = {max(retries, 1)}", f"max_retry_delay = {max(maximum, 1)}"]
    if retries == 0:
        outline.warns("num_retries", "1, for 0 keeps gsutil from using a connection again")
    return Exported("\n".join(lines) + "\n", outline.losses)


def gcloud(policy: Policy) -> Exported[str]:
    """The lines of a configuration for gcloud storage: its four properties of section [storage]."""
    outline = Outline.for_storage(policy)
    retries = outline.count()
    waits = outline.waits.mean
    whole = [max(ceil(value), 1) for value in (waits.initial, waits.multiplier, waits.maximum)]
    if whole == [waits.initial, waits.multiplier, waits.maximum]:
        outline.says("backoff")
    else:
        outline.differs("backoff", f"waits of {outline.waits}: {whole[0]} s, times {whole[1]} up to {whole[2]} s")
    base, multiplier, maximum = whole
    lines = [
        "[storage]",
        f"base_retry_delay = {base}",
        f"exponential_sleep_multiplier = {multiplier}",
        f"max_retries = {retries}",
        f"max_retry_delay = {maximum}",
    ]
    return Exported("\n".join(lines) + "\n", outline.losses)
