"""The real google-cloud-storage against the embedded cloud; it waits in virtual time only where a test says so."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud import storage

from forbear_cloud import Cloud
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.intercepted import server

__all__ = ["server"]


@pytest.fixture
def client(cloud: Cloud) -> Iterator[Any]:
    """The real client, pointed at the cloud."""
    client: Any = storage.Client(project="p", credentials=ANONYMOUS, client_options={"api_endpoint": cloud.url})
    client._bucket_metadata_cache = None  # it reads buckets in threads of its own, which would meet the faults
    yield client
    client.close()


@pytest.fixture
def bucket(client: Any) -> Any:
    """Its bucket "bkt"."""
    return client.bucket("bkt")
