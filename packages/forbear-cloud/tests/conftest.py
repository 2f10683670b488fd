"""A fresh cloud for each test, with one bucket, and a plain HTTP client without retries."""

from collections.abc import Iterator

import httpx
import pytest

from forbear_cloud import Cloud


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A running cloud with the bucket "bkt"."""
    with Cloud() as running:
        running.store.create_bucket("bkt")
        yield running


@pytest.fixture
def http(cloud: Cloud) -> Iterator[httpx.Client]:
    """A client of that cloud."""
    with httpx.Client(base_url=cloud.url, timeout=20, verify=False) as client:  # no TLS here, and loading it costs
        yield client
