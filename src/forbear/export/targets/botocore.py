"""botocore: a `Config` for the clients of AWS, which choose their waits and errors by themselves."""

from typing import TYPE_CHECKING, Any

from forbear.core.budget import TokenBucket
from forbear.export.exported import Exported
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.policy import Policy

if TYPE_CHECKING:
    from botocore.config import Config

_QUOTA = TokenBucket(capacity=500, deposit=1, cost=5, refund=True)


def botocore(policy: Policy) -> "Exported[Config]":
    """A `botocore.config.Config` in the mode "standard"."""
    with needed("botocore", "botocore"):
        from botocore.config import Config

    outline = Outline(policy)
    return Exported(Config(**_parameters(outline)), outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text."""
    outline = Outline(policy)
    lines = [f"    {name}={value!r}," for name, value in _parameters(outline).items()]
    text = "\n".join(["from botocore.config import Config", "", "CONFIG = Config(", *lines, ")", ""])
    return Exported(text, outline.losses)


def _parameters(outline: Outline) -> dict[str, Any]:
    retries = outline.count()
    outline.differs("backoff", f"waits of {outline.waits}: up to 1 s, doubled up to 20 s")
    if outline.waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={outline.waits.jitter}: full")
    budget = outline.policy.budget
    if budget is not None and budget._rule == _QUOTA:
        outline.differs("budget", "budget: one for each client, and timeouts cost more")
    elif budget is None:
        outline.warns("budget", "a quota of 500 tokens for each client, as Budget.aws() has it")
    parameters: dict[str, Any] = {"retries": {"total_max_attempts": retries + 1, "mode": "standard"}}
    if outline.attempt_timeout is not None:
        parameters |= {"connect_timeout": outline.attempt_timeout, "read_timeout": outline.attempt_timeout}
        outline.differs(
            "attempt_timeout", "attempt_timeout: for the connection and for each read, not for both together"
        )
    return parameters
