"""Presets: limits and waits for typical situations. What is transient and what is safe stays with the policy."""

from forbear.core.backoff import Exponential
from forbear.core.dataclass import dataclass
from forbear.core.limits import Limits
from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.core.protocols import Backoff


@dataclass(frozen=True, slots=True)
class Preset(Record):
    """Limits and a backoff under a `name`, with the `reason` for these figures in one or two sentences.

    >>> preset = PRESETS["interactive"]
    >>> preset.limits, preset.backoff
    (Limits(attempts=4, timeout=10), Exponential(initial=0.5, maximum=4.0))
    """

    name: str
    limits: Limits
    backoff: "Backoff"
    reason: str


PRESETS: "Mapping[str, Preset]" = {
    preset.name: preset
    for preset in (
        Preset(
            "interactive",
            Limits(attempts=4, timeout=10),
            Exponential(initial=0.5, multiplier=2, maximum=4, jitter="full"),
            "Somebody waits for the result. After about ten seconds people give up or click again, and a click is a "
            "retry without backoff.",
        ),
        Preset(
            "mobile",
            Limits(attempts=None, timeout=1800),
            Exponential(initial=2, multiplier=1.5, maximum=120, jitter="equal"),
            "Networks of phones disappear for minutes, and each attempt costs battery. The source pages advise mobile "
            "clients to make more retries, at longer intervals, than desktop clients. The steps grow slowly, so that a "
            "fleet has no waves after an outage of a minute.",
        ),
        Preset(
            "ci",
            Limits(attempts=8, timeout=300),
            Exponential(initial=1, multiplier=2, maximum=32, jitter="full"),
            "A failed job is started again from its beginning, so five minutes of patience are cheap; longer waits "
            "would meet the job's own time limit. Full jitter separates the jobs that start at the same second.",
        ),
        Preset(
            "batch",
            Limits(attempts=None, timeout=3600),
            Exponential(initial=2, multiplier=1.4, maximum=300, jitter="full"),
            "No person waits, and an item that fails may cost the work of hours, so an hour of patience is cheap. "
            "Waits of up to five minutes leave a service that recovers to those who are in a hurry. Full jitter, and "
            "steps that grow slowly, keep the load of a fleet even.",
        ),
    )
}
"""The presets by name: "interactive", "mobile", "ci" and "batch"."""


def preset(name: str) -> Preset:
    """Return the preset called `name`; raise ValueError if there is none, TypeError if `name` is no string."""
    if not isinstance(name, str):
        raise TypeError(f"`name` must be the name of a preset, such as 'mobile', got {name!r}")
    if name not in PRESETS:
        raise ValueError(f"`name` must be one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name]
