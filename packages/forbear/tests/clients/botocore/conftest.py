"""Every client of boto3 that a test makes is closed after it."""

from collections.abc import Iterator

import pytest

from forbear_testkit.clients import aws


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close the clients that the test made by `aws.client` or named by `aws.track`."""
    yield
    aws.close_all()
