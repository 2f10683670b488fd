"""Retries for google-cloud-storage: `install`, which makes a client safe, and safe versions of its own retry objects.

`install(client)` is recommended, because it sees every request as it is sent.
"""

try:
    from google.cloud import storage
except ImportError as error:
    raise ImportError(
        'forbear.clients.google_storage needs google-cloud-storage; install it with: pip install "forbear[google]"'
    ) from error

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
from forbear.clients.google_storage.session import install

del storage  # imported to say how to install it

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
