"""The commands of Redis and Valkey: their safety, the meaning of error responses and exceptions, and a policy.

`policy` is for data commands. A module is loaded when one of its names is first used.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.redis.batch import classify_many, classify_transaction
    from forbear.services.redis.errors import (
        is_conflict,
        needs_reconnect,
        response_of,
        verdict_of_exception,
        verdict_of_response,
    )
    from forbear.services.redis.service import RECOMMENDED, RedisCommands, classify
    from forbear.services.redis.table import PROMISES, CommandJudgement, Promise

    policy: Policy

__all__ = [
    "PROMISES", "RECOMMENDED", "CommandJudgement", "Promise", "RedisCommands", "classify", "classify_many",
    "classify_transaction", "is_conflict", "needs_reconnect", "policy", "response_of", "verdict_of_exception",
    "verdict_of_response",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {
            **dict.fromkeys(("PROMISES", "CommandJudgement", "Promise"), "table"),
            **dict.fromkeys(("RECOMMENDED", "RedisCommands", "classify"), "service"),
            **dict.fromkeys(("classify_many", "classify_transaction"), "batch"),
            **dict.fromkeys(("is_conflict", "needs_reconnect", "response_of"), "errors"),
            **dict.fromkeys(("verdict_of_exception", "verdict_of_response"), "errors"),
        },
        calls={"policy": "errors"},
    )
