"""Compare the profiles of a service: the figures come from the policies, the reasons from their docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from docs.generate.markdown import bullets, table, text
from forbear.cli.kit.forecast import backoff_text, end_text, forecast, limits_text, range_text
from forbear.grpc import codes
from forbear.policy import Policy

Profile = Callable[[], Policy]


def section(*profiles: tuple[str, Profile]) -> Iterator[str]:
    """Yield a table with one column for each profile."""
    policies = [(name, profile()) for name, profile in profiles]
    rows = [
        ("backoff", *(backoff_text(policy.backoff) for _, policy in policies)),
        ("wait before each retry", *(_waits(policy) for _, policy in policies)),
        ("limits", *(limits_text(policy.limits) for _, policy in policies)),
        ("if every attempt fails", *(_end(policy) for _, policy in policies)),
        ("retried statuses", *(_statuses(policy) for _, policy in policies)),
        ("retried gRPC codes", *(_codes(policy) for _, policy in policies)),
    ]
    rows = [row for row in rows if any(row[1:])]
    yield from table(("", *(f"`{name}`" for name, _ in policies)), rows)


def said_of(profile: Profile) -> Iterator[str]:
    """Yield the docstring of a profile as Markdown; its asterisks mean powers and are escaped."""
    doc = re.sub(r"(`[^`]*`)|\*", lambda match: match[1] or r"\*", inspect.getdoc(profile) or "")
    for paragraph in doc.split("\n\n"):
        if paragraph.startswith("- "):
            yield from bullets(" ".join(item.split()) for item in re.split("^- ", paragraph, flags=re.MULTILINE)[1:])
        else:
            yield from text(paragraph)


def _waits(policy: Policy) -> str:
    """Return the range of each wait, up to the first that equals the one before."""
    ranges: list[str] = []
    for retry in forecast(policy.limits, policy.backoff).retries:
        shown = range_text(retry.wait).removesuffix(" s")
        if ranges and shown == ranges[-1]:
            break
        ranges.append(shown)
    return f"{', '.join(ranges)} s"


def _end(policy: Policy) -> str:
    """Return how many retries a run makes that never succeeds."""
    return end_text(forecast(policy.limits, policy.backoff)).partition(":")[0]


def _statuses(policy: Policy) -> str:
    statuses = sorted(_statuses_of(policy))
    if set(range(500, 600)) <= set(statuses):
        return ", ".join([*(str(status) for status in statuses if status < 500), "every 5xx"])
    return ", ".join(map(str, statuses))


def _codes(policy: Policy) -> str:
    return ", ".join(codes.NAMES[number] for number in sorted(codes.codes_for(_statuses_of(policy))))


def _statuses_of(policy: Policy) -> frozenset[int]:
    service: Any = policy.service
    statuses: frozenset[int] = getattr(service, "statuses", frozenset())
    return statuses
