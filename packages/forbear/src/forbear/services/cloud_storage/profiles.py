"""The policies of Cloud Storage, each with its backoff and limits. The service of a policy decides what is safe."""

from functools import cache

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage
from forbear.services.errors import DOCUMENTED_WAITS, RECOMMENDED_WAITS, policy_of

_TEN_MINUTES = Limits(attempts=None, timeout=600)
_OLD_PAGE = CloudStorage(documented=True, statuses=frozenset({429, *range(500, 600)}))
_PYTHON_CLIENT = CloudStorage(documented=True, statuses=frozenset({429, 500, 502, 503, 504, 508}))


@cache
def documented() -> Policy:
    """Return a policy that follows the retry page of Cloud Storage to the letter.

    Warning: the page counts an entity tag as a condition of updates to buckets, objects, IAM policies and HMAC keys. So
    this profile repeats these updates if they have an `If-Match` header. No document says that the service enforces the
    header on writes. If it does not, a lost response leads to a second execution. Send `ifMetagenerationMatch`, or the
    etag in the body of a policy or a key, or use `policy`, which does not count the header.

    Waits are `min(2**n + up to 1 s, 64 s)`, for ten minutes in all, without a limit on attempts. Transient are 408, 429
    (except for data sent in a resumable session), every 5xx, socket timeouts and TCP disconnects. Only operations that
    the page calls idempotent are repeated, under the conditions that it names.
    """
    return policy_of(DOCUMENTED, _TEN_MINUTES, DOCUMENTED_WAITS)


@cache
def documented_2020() -> Policy:
    """Return a policy that follows the older page on backoff: it retries 429 and every 5xx, a limited number of times.

    The page offers a cap of 32 or 64 s (here 64, as on today's page) and gives no figure for the number of retries:
    here 10, or 11 attempts. It does not say which operations may be repeated, so the rules of today's page apply.

    One departure: the page lists no transport errors. Here they are transient, around functions too: a lost connection
    says no less than a 503, and a request that may have been executed is not repeated blindly after either.
    """
    return policy_of(_OLD_PAGE, Limits(attempts=11, timeout=None), DOCUMENTED_WAITS)


@cache
def python_client() -> Policy:
    """Return a policy with the Python client's defaults on the retry page: full jitter under 1, 2, 4 … 60 s, for 120 s.

    The client has full jitter; the page does not mention it. There is no limit on attempts. Transient are 429, 500,
    502, 503, 504 and 508; the client itself has 408 where the page says 508. The rules of safety are those of
    `documented`.
    """
    backoff = Exponential(initial=1, multiplier=2, maximum=60, jitter="full")
    return policy_of(_PYTHON_CLIENT, Limits(attempts=None, timeout=120), backoff)


@cache
def gsutil() -> Policy:
    """Return a policy with gsutil's defaults on the retry page: full jitter under 1, 2, 4 … 60 s, 23 retries.

    There is no limit in time; transient statuses and rules of safety are those of `documented`. gsutil's own code
    differs from the page: it caps waits at 32 s and makes 23 attempts on the JSON API. `gsutil_policy` reads the user's
    own settings.
    """
    return policy_of(DOCUMENTED, Limits(attempts=24, timeout=None), gsutil_waits(60))


def gsutil_waits(maximum: float) -> Exponential:
    """Return gsutil's backoff: full jitter under steps of 1, 2, 4 … up to `maximum` seconds, its `max_retry_delay`."""
    return Exponential(initial=1, multiplier=2, maximum=maximum, jitter="full")


@cache
def policy() -> Policy:
    """Return the recommended policy for Cloud Storage.

    It differs from `documented` as follows:

    - Jitter covers half of every wait: retry n waits 2**n to 2**(n+1) s, and 32 to 64 s at the cap. The documented
      formula has no jitter at the cap, so clients that failed together keep coming back together. No wait below the cap
      is shorter than documented.
    - 501, 505 and other rare 5xx are permanent, as in most shipped clients: a retry does not make the server able.
    - 429 on data sent in a resumable session is transient. A chunk is never sent again blindly; shipped clients wait,
      query the session for its state and continue from there.
    - The start of a resumable session is always repeated: it commits nothing.
    - An If-Match header does not make an update safe. The page names ETags as a condition, but other sources say that
      the server obeys them on reads only. Use ifMetagenerationMatch, or `CloudStorage(disputed=True)`.
    - Operations that the page does not name (folders, moves, restores) follow the table, instead of being refused.
    """
    return policy_of(RECOMMENDED, _TEN_MINUTES, RECOMMENDED_WAITS)
