"""The profiles of Cloud Storage, as policies: how long to hold back. What is safe is for the service to say."""

from functools import cache

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage
from forbear.services.errors import ErrorVerdicts

_TEN_MINUTES = Limits(attempts=None, timeout=600)
_DOCUMENTED_WAITS = Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
_OLD_PAGE = CloudStorage(documented=True, statuses=frozenset({429, *range(500, 600)}))
_PYTHON_CLIENT = CloudStorage(documented=True, statuses=frozenset({429, 500, 502, 503, 504, 508}))


@cache
def documented() -> Policy:
    """The retry page of Cloud Storage to the letter.

    Warning: the page counts an entity tag as a condition of updates to buckets, objects, IAM policies and HMAC keys, so
    this profile repeats them where they have an `If-Match` header. No document says that the service enforces the
    header on writes. Where it does not, a lost response leads to a second execution. Send `ifMetagenerationMatch`, or
    the etag in the body of a policy or a key, or take `policy`, which does not count the header.

    Waits of `min(2**n + up to 1 s, 64 s)`, ten minutes in all and no limit on attempts. Worth another try are 408, 429
    (except for data sent in a resumable session), every 5xx, socket timeouts and TCP disconnects. Repeated is only what
    the page calls idempotent, under the conditions it names.
    """
    return _policy(DOCUMENTED, _TEN_MINUTES, _DOCUMENTED_WAITS)


@cache
def documented_2020() -> Policy:
    """The page as it was before, on truncated exponential backoff: 429 and every 5xx, and a maximum number of retries.

    The page offers a cap of 32 or 64 s (here 64, as today's) and gives no figure for the number: here 10, or 11
    attempts. It says nothing of what may be repeated; what today's page says of that holds here, too.

    One departure: the page lists no transport errors, and here they are worth another try, around functions too. A lost
    connection says no less than a 503, and what may have been executed is not repeated blindly after either.
    """
    return _policy(_OLD_PAGE, Limits(attempts=11, timeout=None), _DOCUMENTED_WAITS)


@cache
def python_client() -> Policy:
    """The defaults of the Python client as the retry page lists them: from 1 s, doubled, at most 60 s, 120 s in all.

    Worth another try are 429, 500, 502, 503, 504 and 508; the client itself has 408 where the page says 508. Full
    jitter, which the page does not mention, is what the client does.
    """
    backoff = Exponential(initial=1, multiplier=2, maximum=60, jitter="full")
    return _policy(_PYTHON_CLIENT, Limits(attempts=None, timeout=120), backoff)


@cache
def gsutil() -> Policy:
    """The defaults of gsutil as the retry page has them: full jitter under 1, 2, 4 … 60 s, 23 retries.

    Its code caps waits at 32 s, and counts 23 attempts for the JSON API; `gsutil_policy` reads a user's own settings.
    """
    return _policy(DOCUMENTED, Limits(attempts=24, timeout=None), gsutil_waits(60))


def gsutil_waits(maximum: float) -> Exponential:
    """The backoff of gsutil under another `max_retry_delay`, in seconds."""
    return Exponential(initial=1, multiplier=2, maximum=maximum, jitter="full")


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
    return _policy(RECOMMENDED, _TEN_MINUTES, Exponential(initial=2, multiplier=2, maximum=64, jitter="equal"))


def _policy(service: CloudStorage, limits: Limits, backoff: Exponential) -> Policy:
    return Policy(ErrorVerdicts(service), limits, backoff, repeatable=False, service=service)
