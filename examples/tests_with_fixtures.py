"""Test how a program retries, without waiting, by forbear's fixtures for pytest. Libraries: pytest, httpx.

The server is forbear's embedded cloud: it fails as a test says, and counts what it has executed. Run the tests with
`pytest examples/tests_with_fixtures.py`.
"""

import httpx
import pytest

import forbear
from forbear.services import cloud_storage
from forbear.testing import VirtualTime
from forbear_cloud import Cloud, Fault


def connect(api: str) -> httpx.Client:
    """Return a client of Cloud Storage at this URL."""
    return forbear.install(httpx.Client(base_url=api), cloud_storage.policy, timeout=3600)


def create_bucket(client: httpx.Client, name: str) -> int:
    """Create a bucket; return the status of the last response."""
    return client.post("/storage/v1/b?project=p", json={"name": name}).status_code


def test_a_short_outage_is_survived(virtual_time: VirtualTime) -> None:
    """The bucket is created once, after the minutes for which the service had asked."""
    with Cloud() as cloud, connect(cloud.url) as client:
        cloud.fault(Fault.status(503, retry_after=300, operation="storage.buckets.insert", times=2))
        assert create_bucket(client, "my-bucket") == 200
        assert cloud.effects.count("storage.buckets.insert") == 1
    assert virtual_time.elapsed >= 600


@pytest.mark.usefixtures("no_retries")
def test_without_retries_the_outage_shows() -> None:
    """The fixture `no_retries` turns all retries off."""
    with Cloud() as cloud, connect(cloud.url) as client:
        cloud.fault(Fault.status(503, operation="storage.buckets.insert", times=1))
        assert create_bucket(client, "my-bucket") == 503
        assert not cloud.effects.count("storage.buckets.insert")
