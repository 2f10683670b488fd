"""forbear: retries that know what is safe to repeat, how long to hold back and when to stop.

    @forbear.retry(on=forbear.transient, attempts=5, timeout=60)   decorate a function, sync or async
    policy = forbear.retry(OSError, attempts=3)                    a value: policy.call(f), await policy.acall(f),
                                                                   for attempt in policy: with attempt: ...
    client = forbear.install(httpx.Client(), attempts=3)           put retries into a client: each request is judged
    forbear.explain("POST https://api.example.com/orders")         may it be repeated, and why; it sends nothing
    forbear.report(error)                                          why a run gave up, and each of its attempts
    safe=, forbear.Api, forbear.safe_to_repeat, forbear.run_key    say that a second execution does no harm
    forbear.update, forbear.aupdate                                change a value that others change, too
    forbear.disabled(), forbear.stop_on(event)                     turn retries off; end them from outside

A function is not called again if its error shows a request that must not be executed twice. Unless you choose others,
the limits are 5 attempts and 60 seconds. On giving up, the original error is raised, with a note that says why.

help(forbear.retry) has every option; forbear.clients, services, budgets, testing and observe have the rest.
"""

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.limits import Limits
from forbear.policy import Policy, policy_of, retry, with_policy
from forbear.run import judges as _judges
from forbear.run.runtime import AttemptTimeout
from forbear.run.switch import disable, disabled, enable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear import answers as answers
    from forbear import apis as apis
    from forbear import budgets as budgets
    from forbear import clients as clients
    from forbear import events as events
    from forbear import observe as observe
    from forbear import policies as policies
    from forbear import services as services
    from forbear import testing as testing
    from forbear import verdicts as verdicts
    from forbear.answers.errors import NoAnswer
    from forbear.answers.subject import explain
    from forbear.clients import install
    from forbear.core.report import report
    from forbear.http.api import Api, IdempotencyKey
    from forbear.judges.functions import may_repeat
    from forbear.judges.transient import transient
    from forbear.read_modify_write import aupdate, update
    from forbear.run.answers import TryAgain, Unsatisfied
    from forbear.run.judge_slot import Judge
    from forbear.run.keys import run_key
    from forbear.run.listeners import Listener
    from forbear.run.plan import RetryPlan
    from forbear.run.spending import Throttled
    from forbear.run.stopping import stop_on
    from forbear.run.vouching import safe_to_repeat
    from forbear.services.at_least_once import at_least_once

_PARTS = ("answers", "apis", "budgets", "clients", "events", "observe", "policies", "services", "testing", "verdicts")
"""The public modules below this one, which are loaded when they are first used."""

if not TYPE_CHECKING:
    _LAZY = {
        "Api": "http.api",
        "IdempotencyKey": "http.api",
        "NoAnswer": "answers.errors",
        "Throttled": "run.spending",
        "TryAgain": "run.answers",
        "Unsatisfied": "run.answers",
        "at_least_once": "services.at_least_once",
        "aupdate": "read_modify_write",
        "explain": "answers.subject",
        "may_repeat": "judges.functions",
        "install": "clients",
        "report": "core.report",
        "run_key": "run.keys",
        "safe_to_repeat": "run.vouching",
        "stop_on": "run.stopping",
        "transient": "judges.transient",
        "update": "read_modify_write",
        **{part: f"{part}:*" for part in _PARTS},
    }

    def __getattr__(name):
        """Load what few programs use when it is first used."""
        from forbear.core.lazy import exports

        value = globals()[name] = exports("forbear", _LAZY)[0](name)
        return value


__version__ = "0.1.0"


def _load_judge() -> "Judge":
    from forbear.judges import functions  # at the first failure of a function

    return functions


def _load_listeners() -> "tuple[Listener, ...]":
    from forbear.observe import default_listeners  # at the first failure; it takes this function's place

    return default_listeners()


def _note_declined(error: Exception, plan: "RetryPlan", operation: str) -> None:
    """Note on an error that `on` declined it although `forbear.transient` would have retried it; a bug gets no note."""
    is_bug = type(error).__module__ == "builtins" and not isinstance(error, OSError)
    if is_bug or plan.service is not None or getattr(plan.on, "judges_errors", False):
        return
    from forbear.judges.transient import note_declined  # few programs need it

    note_declined(error, operation)


def _check_name(name: str) -> None:
    """Raise ValueError for a name in `safe` that its service, as far as it is known, does not have."""
    from forbear.judges.data_facts import check_name  # only for those who vouch

    check_name(name)


_judges.load_judge[0] = _load_judge
_judges.listeners[0] = _load_listeners
_judges.declined[0] = _note_declined
_judges.name_checks.append(_check_name)

__all__ = [
    "Api",
    "AttemptTimeout",
    "Constant",
    "Exponential",
    "IdempotencyKey",
    "Limits",
    "NoAnswer",
    "Policy",
    "Sequence",
    "Throttled",
    "TryAgain",
    "Unsatisfied",
    "at_least_once",
    "aupdate",
    "disable",
    "disabled",
    "enable",
    "explain",
    "install",
    "may_repeat",
    "policy_of",
    "report",
    "retry",
    "run_key",
    "safe_to_repeat",
    "stop_on",
    "transient",
    "update",
    "with_policy",
]


def __dir__() -> list[str]:
    return sorted((*__all__, *_PARTS))
