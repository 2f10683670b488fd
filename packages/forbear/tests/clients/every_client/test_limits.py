"""Limits for a client: `RetryTransport(attempts=3)` and the like count requests on a server."""

from typing import Any

import forbear
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Wire, reply


@EVERY
def test_limits_alone(flavour: Any) -> None:
    """So many requests, and the waits of the backoff; the report names the limit."""
    with Wire(reply(503)) as wire:
        transport = flavour.transport(attempts=3, backoff=forbear.Constant(2))
        result = flavour.call(transport, "GET", wire.url)
        assert (result.status, len(wire.seen), result.slept) == (503, 3, [2.0, 2.0])
        assert result.report.text == "limit of 3 attempts reached"


@EVERY
def test_a_budget_alone(flavour: Any) -> None:
    """The first failure takes the only token."""
    budget = forbear.budgets.Budget(forbear.budgets.TokenBucket(capacity=1))
    with Wire(reply(503)) as wire:
        flavour.call(flavour.transport(budget=budget, backoff=forbear.Constant(0)), "GET", wire.url)
        assert len(wire.seen) == 2
