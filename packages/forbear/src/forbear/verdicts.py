"""Verdicts, which `on=` and `on_result=` may return, and `decide`, the pure function that all loops call with them."""

from forbear.core.decide import Stop, Wait, decide
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Effect, Kind, Safety, Verdict

__all__ = [
    "CONFLICT",
    "NOT_EXECUTED",
    "PERMANENT",
    "TRANSIENT",
    "Effect",
    "Kind",
    "Safety",
    "Stop",
    "Verdict",
    "Wait",
    "decide",
]
