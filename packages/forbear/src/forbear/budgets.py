"""Retry budgets, of one process and of a fleet, and the rules by which they count: for `budget=` of a policy."""

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.run.budget import Budget
from forbear.shared_budget.budget import BudgetUnavailable, SharedBudget

__all__ = [
    "ActiveShare",
    "Budget",
    "BudgetUnavailable",
    "ClientThrottle",
    "Ratio",
    "RequestRatio",
    "SharedBudget",
    "Throttle",
    "TokenBucket",
]
