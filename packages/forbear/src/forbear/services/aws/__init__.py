"""The operations of AWS: their safety, by botocore's models and our corrections, the meaning of errors, and a policy.

A module is loaded when one of its names is first used. `policy` is for calls through `forbear.clients.botocore`.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.aws.errors import verdict_of_exception
    from forbear.services.aws.service import RECOMMENDED, Aws, AwsJudgement, classify

    policy: Policy

__all__ = ["RECOMMENDED", "Aws", "AwsJudgement", "classify", "policy", "verdict_of_exception"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {
            "RECOMMENDED": "service",
            "Aws": "service",
            "AwsJudgement": "service",
            "classify": "service",
            "verdict_of_exception": "errors",
        },
        calls={"policy": "errors"},
    )
