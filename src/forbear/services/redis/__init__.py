"""The commands of Redis and Valkey: what they tolerate, what their replies and failures mean, and a policy for them.

`policy` is for data commands. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.redis.batch import classify_many, classify_transaction
    from forbear.services.redis.failures import is_conflict, reply_of, verdict_of_exception
    from forbear.services.redis.judge import classify
    from forbear.services.redis.judgement import PROMISES, Judgement, Promise
    from forbear.services.redis.replies import needs_reconnect, verdict_of_reply

    policy: Policy

__all__ = [
    "PROMISES", "Judgement", "Promise", "classify", "classify_many", "classify_transaction", "is_conflict",
    "needs_reconnect", "policy", "reply_of", "verdict_of_exception", "verdict_of_reply",
]  # fmt: skip

if not TYPE_CHECKING:  # a checker that sees it would believe in any name
    _HOMES = {
        "PROMISES": "judgement",
        "Judgement": "judgement",
        "Promise": "judgement",
        "classify": "judge",
        "classify_many": "batch",
        "classify_transaction": "batch",
        "is_conflict": "failures",
        "needs_reconnect": "replies",
        "reply_of": "failures",
        "verdict_of_exception": "failures",
        "verdict_of_reply": "replies",
    }

    def __getattr__(name):
        from importlib import import_module

        if name == "policy":
            from forbear.services.redis import profiles

            return profiles.policy()
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
