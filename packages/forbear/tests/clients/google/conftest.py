"""The real google-cloud-storage against the embedded cloud; it waits in virtual time only where a test says so."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud import storage

from forbear_cloud import Cloud
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.intercepted import server
from forbear_testkit.clients.google.rest_server import Server, running

__all__ = ["server"]


@pytest.fixture(scope="module")
def one_rest() -> Iterator[Server]:
    """One server of REST for the tests of a module."""
    with running() as rest:
        yield rest


@pytest.fixture
def rest(one_rest: Server) -> Server:
    """A server of REST that has seen nothing yet."""
    for seen in (one_rest.fates, one_rest.requests, one_rest.executed):
        seen.clear()
    return one_rest


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
