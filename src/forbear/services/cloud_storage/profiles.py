"""The two profiles of Cloud Storage, as policies: how long to hold back. What is safe is for the service to say."""

from functools import cache

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED

# Socket timeouts and TCP disconnects; HTTP adapters judge their client's own errors.
_ON = (ConnectionError, TimeoutError)
_LIMITS = Limits(attempts=None, timeout=600)


@cache
def documented() -> Policy:
    """The retry page of Cloud Storage to the letter.

    Waits of `min(2**n + up to 1 s, 64 s)`, ten minutes in all and no limit on attempts. Worth another try are 408, 429
    (except for data sent in a resumable session), every 5xx, socket timeouts and TCP disconnects. Repeated is only what
    the page calls idempotent, under the conditions it names.
    """
    backoff = Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
    return Policy(_ON, _LIMITS, backoff, service=DOCUMENTED)


@cache
def policy() -> Policy:
    """What we recommend for Cloud Storage; how it differs from `documented`, and why.

    - The jitter spans half of every wait, so that retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The
      documented formula has no jitter left at the cap: clients that failed together would come back together for ever.
      No wait below the cap is shorter than documented.
    - 501, 505 and other rare 5xx are final, as in most shipped clients: a repeat does not make the server able.
    - 429 on data sent in a resumable session is transient: no chunk is sent again blindly anyway, and to wait, ask the
      session for its state and go on from there is what shipped clients do.
    - The start of a resumable session is always repeated: it commits nothing.
    - An If-Match header does not make an update safe: the page names ETags as a condition, but the server is said to
      heed them on reads only. Use ifMetagenerationMatch, or `CloudStorage(disputed=True)`.
    - Operations that the page does not name (folders, moves, restores) are judged by the table, not ruled out.
    """
    backoff = Exponential(initial=2, multiplier=2, maximum=64, jitter="equal")
    return Policy(_ON, _LIMITS, backoff, service=RECOMMENDED)
