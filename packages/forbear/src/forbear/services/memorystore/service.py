"""The admin APIs of Memorystore for Redis, Redis Cluster and Valkey. Data commands are in forbear.services.redis."""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear.services.errors import DOCUMENTED_WAITS, RECOMMENDED_WAITS, policy_of
from forbear.tables.service import TableService

DOCUMENTED_STATUSES = frozenset({429, *range(500, 600)})
"""The statuses that the page on exponential backoff of Memorystore for Redis calls retryable."""


class Memorystore(TableService):
    """The service of Memorystore's admin APIs; `statuses` replaces the transient statuses.

    >>> from forbear.http.request import Request
    >>> read = Request("GET", "redis.googleapis.com", "/v1/projects/p/locations/l/instances/i")
    >>> judgement = Memorystore().classify(read)
    >>> judgement.operation, judgement.repeatable
    ('redis.projects.locations.instances.get', True)
    """

    __slots__ = ()

    name = "memorystore"
    folder = Path(__file__).parent
    files: ClassVar = {"redis": ("redis",), "memorystore": ("valkey",)}


RECOMMENDED = Memorystore()
"""The service with its recommended rules."""

DOCUMENTED = Memorystore(statuses=DOCUMENTED_STATUSES)


@cache
def documented() -> Policy:
    """Return a policy that follows the page on exponential backoff of Memorystore for Redis to the letter.

    Waits are `min(2**n + up to 1 s, 64 s)` (the page offers 32 or 64). The page asks for a maximum number of retries
    and gives no figure. Here it is 10, or 11 attempts, which takes a little over five minutes and is well past the cap.
    Transient are 429 and every 5xx. The page names no operation, so the table decides here, too.

    One departure: the page lists no transport errors. Here they are transient, around functions too: a lost connection
    says no less than a 503, and a request that may have been executed is not repeated blindly after either.
    """
    return policy_of(DOCUMENTED, Limits(attempts=11, timeout=None), DOCUMENTED_WAITS)


@cache
def policy() -> Policy:
    """Return the recommended policy for the admin APIs of Memorystore.

    It differs from `documented` as follows:

    - Jitter covers half of every wait: retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The documented
      formula has no jitter at the cap, so clients that failed together keep coming back together.
    - There is a timeout of five minutes besides the 11 attempts. A number of attempts is no limit where each one is
      slow.
    - 501, 505 and other rare 5xx are permanent: a retry does not make the server able.
    - 408 is transient: the server did not receive the whole request.
    """
    return policy_of(RECOMMENDED, Limits(attempts=11, timeout=300), RECOMMENDED_WAITS)
