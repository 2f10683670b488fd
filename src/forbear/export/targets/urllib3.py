"""urllib3: a `Retry`, for code that can take nothing else. It sees the method and the status of a request, no more."""

from typing import TYPE_CHECKING, Any

from forbear.export.exported import Exported
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.policy import Policy

if TYPE_CHECKING:
    from urllib3.util import Retry


def urllib3(policy: Policy) -> "Exported[Retry]":
    """A `urllib3.util.Retry`; the last response comes out as it is, without an exception."""
    with needed("urllib3", "urllib3"):
        from urllib3.util import Retry

    outline = Outline(policy)
    parameters = _parameters(outline)
    if not hasattr(Retry, "DEFAULT_RETRY_AFTER_MAX"):
        del parameters["retry_after_max"]
        outline.warns("urllib3", "before 2.6.3 it obeys any Retry-After, however long")
    return Exported(Retry(**parameters), outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text, for urllib3 2.6.3 and newer."""
    outline = Outline(policy)
    parameters = _parameters(outline)
    lines = ["from urllib3.util import Retry  # 2.6.3 or newer", "", "RETRY = Retry("]
    lines += [f"    {name}={value!r}," for name, value in parameters.items()]
    return Exported("\n".join([*lines, ")", ""]), outline.losses)


def _parameters(outline: Outline) -> dict[str, Any]:
    policy, waits = outline.policy, outline.waits
    retries = outline.count()
    outline.differs(
        "backoff", f"waits of {waits}: the first retry comes at once, then doubled from {2 * waits.initial:g} s"
    )
    spread = (
        waits.spread if waits.jitter in ("documented", "spread") else 0 if waits.jitter == "none" else waits.initial
    )
    if waits.jitter == "documented":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: up to {spread:g} s on top of each wait, none at the longest")
    outline.differs("retry_after", "Retry-After: obeyed without jitter")
    if outline.timeout is None:
        outline.says("max_retry_after")
    methods = outline.methods
    outline.tells_methods_apart()
    if policy.service is None:
        outline.differs("errors", "errors: those of connections, and statuses 408, 429, 500, 502, 503, 504")
    else:
        outline.differs("errors", "errors: those of connections as urllib3 sees them; the statuses are the policy's")
    again = retries if methods is None or methods else 0
    return {
        "total": retries,
        "connect": retries,
        "read": again,
        "status": again,
        "other": again,
        "allowed_methods": tuple(sorted(methods)) if methods else None,
        "status_forcelist": outline.statuses if again else (),
        "backoff_factor": waits.initial,
        "backoff_max": waits.maximum,
        "backoff_jitter": spread,
        "retry_after_max": round(policy.limits.max_retry_after if outline.timeout is None else outline.timeout),
        "raise_on_status": False,
    }
