"""Retries for google-cloud-storage: `install`, which makes a client safe, and safe versions of its own retry objects.

`install(client)` is recommended, because it sees every request as it is sent, by an adapter on the client's session. A
request that forbear gives up on raises the RetryError by which Google's loops end. They do not repeat it, so attempts
do not multiply, and unsafe requests are not repeated. A call whose retries are off is sent once and raises the errors
of the plain client.
"""

from typing import TYPE_CHECKING, Any, TypeVar

try:
    from google.cloud import storage
except ImportError as error:
    raise ImportError(
        'forbear.clients.google_storage needs google-cloud-storage; install it with: pip install "forbear[google]"'
    ) from error

import requests
from requests.adapters import HTTPAdapter

from forbear.clients.google_storage.retry import (
    DEFAULT_RETRY,
    DEFAULT_RETRY_IF_ETAG_IN_JSON,
    DEFAULT_RETRY_IF_GENERATION_SPECIFIED,
    DEFAULT_RETRY_IF_METAGENERATION_SPECIFIED,
    ConditionalRetryPolicy,
    Retry,
    is_etag_in_json,
    is_generation_specified,
    is_metageneration_specified,
    is_transient,
)
from forbear.exchange.chosen import choose
from forbear.exchange.http.options import check_policy
from forbear.policy import Policy
from forbear.services import cloud_storage
from forbear.services.cloud_storage.service import RECOMMENDED

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.run.derive import ClientOptions


__all__ = [
    "DEFAULT_RETRY",
    "DEFAULT_RETRY_IF_ETAG_IN_JSON",
    "DEFAULT_RETRY_IF_GENERATION_SPECIFIED",
    "DEFAULT_RETRY_IF_METAGENERATION_SPECIFIED",
    "ConditionalRetryPolicy",
    "Retry",
    "install",
    "is_etag_in_json",
    "is_generation_specified",
    "is_metageneration_specified",
    "is_transient",
]


C = TypeVar("C", bound=storage.Client)


def install(
    client: C, policy: Policy | None = None, *, settle: "Settle" = False, **options: "Unpack[ClientOptions]"
) -> C:
    """Make a google-cloud-storage client safe, and return it.

    Every request is judged as it is sent. It is repeated only if its operation allows it. Broken downloads are
    continued, and of a resumable upload only the part that its session lacks is sent again. `policy` is by default
    `cloud_storage.policy`; your own brings its limits, backoff and `on`. The keywords of `forbear.retry` but `on`, such
    as `attempts=3, timeout=30`, change it. The table of Cloud Storage applies to every host, emulators included.

    A call is sent once if its `retry=` is None (by default or by the caller), or a ConditionalRetryPolicy whose
    condition does not hold. Its errors are those of the plain client. With any other `retry=`, `policy` decides, and
    Google's loops end after their first attempt. Giving up raises a `google.api_core.exceptions.RetryError` whose
    `cause` is the original error, with a note and a report. Errors that no loop would repeat are raised unchanged.

    `settle` lets a read say what became of a write that a later attempt finds done, as for RetryAdapter: True for the
    state, patterns for some requests, or a function `mine(sent, read)` that recognizes its own write.

    Raises TypeError for the policy of another service, for another client, and for a client whose session has its own
    adapters (mutual TLS). Raises ImportError for a version of google-cloud-storage that keeps `retry=` elsewhere.
    Processes of the transfer manager make their own clients: use its threads.

    >>> from google.auth.credentials import AnonymousCredentials
    >>> from google.cloud import storage
    >>> client = storage.Client("my-project", AnonymousCredentials(), client_options={"api_endpoint": cloud.url})
    >>> install(client, attempts=3).bucket("my-bucket").exists()
    True
    >>> client.close()
    """
    from forbear.clients.google_storage.adapter import Adapter  # users of the retry objects do not need it

    session: Any = getattr(client, "_http", None) if isinstance(client, storage.Client) else None
    if not isinstance(session, requests.Session):
        raise TypeError(
            "`client` must be a google.cloud.storage.Client whose session is one of requests; for asyncio and gRPC "
            f"there is forbear.clients.grpc, got {client!r}"
        )
    chosen: Any = choose("install", cloud_storage.policy if policy is None else policy, options, ("settle",))[0]
    check_policy(chosen)
    if chosen.service is not None and chosen.service.name != RECOMMENDED.name:
        raise TypeError(
            f"`policy` must be for Cloud Storage or for no service in particular, got one for {chosen.service.name}; "
            "take forbear.services.cloud_storage.policy, or one of forbear.retry(on=...)"
        )
    for prefix in ("https://", "http://"):
        present = session.get_adapter(f"{prefix}storage.googleapis.com")
        if type(present) not in (HTTPAdapter, Adapter):
            raise TypeError(
                "`client` must have a session with plain adapters, which can be replaced; "
                f"got {type(present).__qualname__} for {prefix}"
            )
        kept: Any = present
        session.mount(
            prefix,
            Adapter(
                chosen,
                settle=settle,
                pool_connections=kept._pool_connections,
                pool_maxsize=kept._pool_maxsize,
                pool_block=kept._pool_block,
            ),
        )
    return client
