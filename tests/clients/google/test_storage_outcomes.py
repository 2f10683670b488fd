"""The table of outcomes that runs through all clients, through google-cloud-storage made safe in either way."""

from collections.abc import Callable
from typing import Any

import pytest
import requests
from google.api_core import exceptions

import forbear
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.testing import virtual_time
from forbear.testing.cloud import Cloud
from forbear.testing.cloud.actions import When
from tests.clients.test_httpx_outcomes import FAULTS, OPERATIONS, effects, fault

CALLS: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "read": lambda client, retry: client.bucket("bkt").blob("there").download_as_bytes(**retry),
    "create only": lambda client, retry: client.create_bucket("fresh", **retry),
    "with condition": lambda client, retry: (
        client.bucket("bkt").blob("new").upload_from_string(b"abc", if_generation_match=0, **retry)
    ),
    "without condition": lambda client, retry: client.bucket("bkt").blob("new").upload_from_string(b"abc", **retry),
    "never": lambda client, retry: client.create_hmac_key("a@b", project_id="p", **retry),
}


@pytest.mark.parametrize("way", ["install", "retry="])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_operation_is_repeated_only_if_that_does_no_harm(
    cloud: Cloud, client: Any, way: str, kind: str, when: When
) -> None:
    """The outcomes and the effects are those of every other client."""
    retry: dict[str, Any] = {} if way == "install" else {"retry": DEFAULT_RETRY}
    if way == "install":
        install(client)
    for name, operation in OPERATIONS.items():
        cloud.reset()
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "there", b"abc")
        cloud.fault(fault(kind, when))
        caught: Exception | None = None
        with virtual_time(seed=7) as time:
            try:
                CALLS[name](client, retry)
            except (exceptions.GoogleAPIError, requests.RequestException) as error:
                caught = error
        done = int(when == "after" and operation.effect is not None)
        report = forbear.report(caught)
        if operation.again is None:
            assert (len(cloud.requests), effects(cloud, operation)) == (1, done), name
            assert report is not None
            assert report.reason is forbear.Reason.UNSAFE
            assert not report.maybe_done
        else:
            assert (len(cloud.requests), len(time.slept)) == (2, 1), name
            assert effects(cloud, operation) == (operation.effect is not None)
            assert getattr(caught, "code", None) == (operation.again if done else None), name
            if done:
                assert report is not None
                assert report.maybe_done
