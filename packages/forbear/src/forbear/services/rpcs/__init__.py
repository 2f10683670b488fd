"""RPCs that no service's table has: `rules.judge` is the one judgement on them, over gRPC and over REST transports.

`RpcJudgement` is what it returns.
"""

from functools import lru_cache
from typing import Any

from forbear.core.service import Judgement
from forbear.core.verdict import Safety

NAME = "grpc"
"""The service's name in judgements on RPCs that no service knows."""


class RpcJudgement(Judgement):
    """The safety of an RPC that no table has; `why` says which rule decided, and where it has its facts from.

    - `proof` is the kind of value that makes this call safe: "key", "absent" for an id that the caller chose, "version"
      or None. `met` is its field.
    - `span` is the number of seconds, from the first attempt, within which the server knows the key; None without one.
    """

    __slots__ = ("why", "proof", "span")

    why: str
    proof: str | None
    span: float | None

    def __init__(
        self,
        service: str,
        operation: str | None,
        safety: Safety,
        *,
        why: str = "",
        proof: str | None = None,
        span: float | None = None,
        **judgement: Any,
    ) -> None:
        super().__init__(service, operation, safety, **judgement)
        self._set(why=why, proof=proof, span=span)


def last_begin(judgement: Judgement) -> float | None:
    """Return the seconds from the first attempt within which a repeat may begin, None for no limit.

    The server may forget a key after its span. A tenth of it is left for clocks and connections.
    """
    span = judgement.span if isinstance(judgement, RpcJudgement) else None
    return None if span is None else 0.9 * span


@lru_cache(maxsize=1024)
def allow_read(name: str, why: str) -> Judgement:
    """Return the judgement on a read."""
    return RpcJudgement(NAME, name, Safety.ALWAYS, repeatable=True, mutation=False, why=why)


def allow_write(name: str, why: str, maybe_done: tuple[int, ...]) -> Judgement:
    """Return the judgement on a write that may be executed twice, whatever its request has."""
    return RpcJudgement(NAME, name, Safety.ALWAYS, repeatable=True, maybe_done=maybe_done, why=why)


@lru_cache(maxsize=1024)
def forbid(name: str, why: str) -> Judgement:
    """Return the judgement on an RPC that nothing but the user's word allows."""
    return RpcJudgement(NAME, name, Safety.NEVER, unknown=why, why=why)
