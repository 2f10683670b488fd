"""The APIs by which Memorystore for Redis, Redis Cluster and Valkey are administered; not the data in them."""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.tables.service import TableService

DOCUMENTED_STATUSES = frozenset({429, *range(500, 600)})
"""What the page on exponential backoff of Memorystore for Redis calls worth another try."""


class Memorystore(TableService):
    """What is known of the admin APIs; `statuses` are those worth another try (408, 429, 500, 502, 503 and 504)."""

    __slots__ = ()

    folder = Path(__file__).parent
    files: ClassVar = {"redis": ("redis",), "memorystore": ("valkey",)}

    @property
    def name(self) -> str:
        """The name in judgements and reports."""
        return "memorystore"


RECOMMENDED = Memorystore()
DOCUMENTED = Memorystore(statuses=DOCUMENTED_STATUSES)


@cache
def documented() -> Policy:
    """The page on exponential backoff of Memorystore for Redis to the letter.

    Waits of `min(2**n + up to 1 s, 64 s)` (the page offers 32 or 64) and a maximum number of retries, for which it
    gives no figure: here 10, or 11 attempts, which is a little over five minutes and well past the cap. Worth another
    try are 429 and every 5xx. The page names no operation; which may be repeated is for the table to say here, too.

    One departure: the page lists no transport errors, and here they are worth another try, around functions too. A lost
    connection says no less than a 503, and what may have been executed is not repeated blindly after either.
    """
    backoff = Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
    limits = Limits(attempts=11, timeout=None)
    return Policy(ErrorVerdicts(DOCUMENTED), limits, backoff, repeatable=False, service=DOCUMENTED)


@cache
def policy() -> Policy:
    """What we recommend for the administration of Memorystore; how it differs from `documented`, and why.

    - The jitter spans half of every wait, so that retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The
      documented formula has no jitter left at the cap: clients that failed together would come back together for ever.
    - A timeout of five minutes besides the 11 attempts: a count of attempts is no bound where each of them is slow, and
      a deleted instance holds its name for longer than that, so a repeated delete cannot hit a new one.
    - 501, 505 and other rare 5xx are final: a repeat does not make the server able.
    - 408 is worth another try: the server has not got the whole request.
    """
    backoff = Exponential(initial=2, multiplier=2, maximum=64, jitter="equal")
    limits = Limits(attempts=11, timeout=300)
    return Policy(ErrorVerdicts(RECOMMENDED), limits, backoff, repeatable=False, service=RECOMMENDED)
