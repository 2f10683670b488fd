"""forbear: retries that know what is safe to repeat, how long to hold back and when to stop."""

from forbear.core.attempt import Attempt
from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.decide import Limits, Reason, Stop, Wait, decide
from forbear.core.events import (
    BudgetDegraded,
    BudgetRestored,
    Event,
    Failed,
    GaveUp,
    Recovered,
    Scheduled,
    Succeeded,
    WouldStop,
)
from forbear.core.report import Report, report
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Effect, Kind, Safety, Verdict
from forbear.observe import default_listeners
from forbear.policy import Policy, policy_of, retry, with_policy
from forbear.run import listeners as _listeners
from forbear.run.budget import Budget
from forbear.run.endings import RAISE, TryAgain, Unsatisfied
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.run.judge_slot import slot as _slot
from forbear.run.runtime import AttemptTimeout
from forbear.run.spending import Throttled
from forbear.run.switch import disable, disabled, enable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear import apis as apis
    from forbear.answers.answer import Answer, FailureOutcome
    from forbear.answers.errors import NoAnswer
    from forbear.answers.subject import explain
    from forbear.clients._installing import install
    from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
    from forbear.core.presets import PRESETS, Preset
    from forbear.core.protocols import Backoff, On
    from forbear.core.service import Judgement
    from forbear.http.api import Api, IdempotencyKey
    from forbear.judges.transient import transient
    from forbear.read_modify_write import aupdate, update
    from forbear.run.judge_slot import Judge, RunContext
    from forbear.run.stopping import stop_on
    from forbear.run.vouching import safe_to_repeat
    from forbear.shared_budget.budget import BudgetUnavailable, SharedBudget
else:
    _LAZY = {
        "ActiveShare": "core.admission",
        "Answer": "answers.answer",
        "Backoff": "core.protocols",
        "BudgetUnavailable": "shared_budget.budget",
        "ClientThrottle": "core.admission",
        "FailureOutcome": "answers.answer",
        "Api": "http.api",
        "IdempotencyKey": "http.api",
        "NoAnswer": "answers.errors",
        "On": "core.protocols",
        "PRESETS": "core.presets",
        "Preset": "core.presets",
        "RequestRatio": "core.admission",
        "SharedBudget": "shared_budget.budget",
        "apis": "apis:*",
        "aupdate": "read_modify_write",
        "explain": "answers.subject",
        "install": "clients._installing",
        "safe_to_repeat": "run.vouching",
        "stop_on": "run.stopping",
        "transient": "judges.transient",
        "update": "read_modify_write",
    }

    def __getattr__(name):
        """Load what few programs use when it is first used."""
        from forbear.core.lazy import exports

        value = globals()[name] = exports("forbear", _LAZY)[0](name)
        return value


__version__ = "0.1.0"

_listeners.set_process_listeners(default_listeners)  # until the application says otherwise, by forbear.observe.listen


def _load_judge(error: BaseException, context: "RunContext") -> "Judgement | None":
    """Load the judge of functions at the first failure, let it take this function's place, and ask it."""
    from importlib import import_module

    judge: Judge = import_module("forbear.judges.functions").judge
    _slot[0] = judge
    return judge(error, context)


_slot[0] = _load_judge

__all__ = [
    "CONFLICT",
    "NOT_EXECUTED",
    "PERMANENT",
    "PRESETS",
    "RAISE",
    "TRANSIENT",
    "ActiveShare",
    "Answer",
    "Api",
    "AsyncAttempts",
    "Attempt",
    "AttemptTimeout",
    "Attempts",
    "Backoff",
    "Budget",
    "BudgetDegraded",
    "BudgetRestored",
    "BudgetUnavailable",
    "ClientThrottle",
    "Constant",
    "Effect",
    "Event",
    "Exponential",
    "Failed",
    "FailureOutcome",
    "GaveUp",
    "IdempotencyKey",
    "Kind",
    "Limits",
    "NoAnswer",
    "On",
    "Policy",
    "Preset",
    "Ratio",
    "Reason",
    "Recovered",
    "Report",
    "RequestRatio",
    "Safety",
    "Scheduled",
    "Sequence",
    "SharedBudget",
    "Stop",
    "Succeeded",
    "Throttle",
    "Throttled",
    "TokenBucket",
    "TryAgain",
    "Unsatisfied",
    "Verdict",
    "Wait",
    "WouldStop",
    "aupdate",
    "decide",
    "disable",
    "disabled",
    "enable",
    "explain",
    "install",
    "policy_of",
    "report",
    "retry",
    "safe_to_repeat",
    "stop_on",
    "transient",
    "update",
    "with_policy",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
