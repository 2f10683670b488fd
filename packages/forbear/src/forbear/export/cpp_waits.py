"""The waits of google-cloud-cpp, which its client of Cloud Storage and its generated clients share."""

from forbear.export.outline import Outline
from forbear.text.duration import show

_CPP_SOURCE = "google-cloud-cpp, backoff_policy.cc: `current_delay_end_ *= scaling_`"


def cpp_window(outline: Outline) -> tuple[float, float, float]:
    """Return the backoff of google-cloud-cpp: the lower end of its first window, the longest wait, and the factor.

    Times are in seconds. Records what the waits and the jitter become.
    """
    waits = outline.mean_waits
    # The client draws a wait between a lower end and that end times the factor; both grow by the factor.
    factor = max(waits.multiplier, 1.01)
    shortest = 2 * waits.initial / (1 + factor)
    longest = max(outline.waits.longest, shortest)
    outline.waits_become(
        [_cpp_mean(shortest * factor**n, factor, longest) for n in range(outline.shown_waits)], _CPP_SOURCE
    )
    if outline.waits.jitter == "equal" and factor == 2:
        outline.says("jitter")
    outline.differs(
        "jitter",
        f"jitter={outline.waits.jitter}: a wait is drawn from {show(round(shortest, 3))} to "
        f"{show(round(shortest * factor, 3))}, and so on ({_CPP_SOURCE})",
    )
    return shortest, longest, factor


def _cpp_mean(lower: float, factor: float, longest: float) -> float:
    """Return the mean wait in seconds that the client draws from a window; the last one ends at the longest wait."""
    if lower * factor >= longest:
        return longest * (1 + 1 / factor) / 2
    return lower * (1 + factor) / 2


def cpp_milliseconds(seconds: float) -> str:
    """Return seconds as a duration of C++, at least 1 ms."""
    return f"std::chrono::milliseconds({max(round(seconds * 1000), 1)})"
