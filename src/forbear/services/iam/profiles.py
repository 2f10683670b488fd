"""The two profiles of IAM, as policies: how long to hold back. What is safe is for the service to say."""

from functools import cache

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services.failures import Failures
from forbear.services.iam.service import DOCUMENTED, RECOMMENDED

_LIMITS = Limits(attempts=None, timeout=300)


@cache
def documented() -> Policy:
    """The retry page of IAM to the letter.

    Waits of `min(2**n + up to 1 s, 64 s)` (the page offers 32 or 64), five minutes in all as in its example, and no
    limit on attempts. Worth another try are 500, 502, 503 and 504. 404 is optional on the page:
    `documented.replace(service=Iam(statuses=documented.service.statuses, retry_not_found=True))`. A 409 with the status
    ABORTED calls for the whole read-modify-write, as `forbear.update` does it with `is_conflict`. The page names no
    operation that must not be repeated; which may be is for the table to say here, too.

    One departure: the page lists no transport errors, and here they are worth another try, around functions too. A lost
    connection says no less than a 503, and what may have been executed is not repeated blindly after either.
    """
    backoff = Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
    return Policy(Failures(DOCUMENTED), _LIMITS, backoff, repeatable=False, service=DOCUMENTED)


@cache
def policy() -> Policy:
    """What we recommend for IAM; how it differs from `documented`, and why.

    - The jitter spans half of every wait, so that retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The
      documented formula has no jitter left at the cap: clients that failed together would come back together for ever.
    - 429 is worth another try: the page warns of quotas, and a quota comes back with time.
    - So is 408, by which a server says that it has not got the whole request.
    """
    backoff = Exponential(initial=2, multiplier=2, maximum=64, jitter="equal")
    return Policy(Failures(RECOMMENDED), _LIMITS, backoff, repeatable=False, service=RECOMMENDED)
