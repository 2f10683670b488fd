"""A fresh cloud for each test, with one bucket, and a plain HTTP client that neither retries nor judges."""

from collections.abc import Iterator

import httpx
import pytest

from forbear.testing.cloud import Cloud


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as running:
        running.store.create_bucket("bkt")
        yield running


@pytest.fixture
def http(cloud: Cloud) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cloud.url, timeout=20) as client:
        yield client
