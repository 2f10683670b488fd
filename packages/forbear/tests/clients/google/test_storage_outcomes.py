"""The table of outcomes that runs through all clients, through google-cloud-storage made safe in either way."""

from collections.abc import Callable
from typing import Any

import pytest
import requests
from google.api_core import exceptions

import forbear
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_cloud.faults.actions import When
from forbear_testkit.clients.outcomes import FAULTS, OPERATIONS, SHORT, effects, fault
from forbear_testkit.rows import each_once

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
            assert report.reason is forbear.events.Reason.UNSAFE
            assert not report.maybe_done
        else:
            assert (len(cloud.requests), len(time.slept)) == (2, 1), name
            assert effects(cloud, operation) == (operation.effect is not None)
            assert getattr(caught, "code", None) == (operation.again if done else None), name
            if done:
                assert report is not None
                assert report.maybe_done


@pytest.mark.parametrize(
    ("way", "name"), each_once(["install", "retry="], ["read", "with condition", "without condition"])
)
def test_a_response_that_does_not_come_has_an_unknown_outcome(cloud: Cloud, client: Any, way: str, name: str) -> None:
    """A read timeout after the effect is repeated where that is safe, and raised where it is not."""
    options: dict[str, Any] = {"timeout": SHORT} if way == "install" else {"timeout": SHORT, "retry": DEFAULT_RETRY}
    if way == "install":
        install(client)
    operation = OPERATIONS[name]
    cloud.store.put("bkt", "there", b"abc")
    cloud.fault(Fault.delay(60, when="after"))
    caught: Exception | None = None
    with virtual_time(seed=7):
        try:
            CALLS[name](client, options)
        except (exceptions.GoogleAPIError, requests.RequestException) as error:
            caught = error
    assert effects(cloud, operation) == (operation.effect is not None)
    report = forbear.report(caught)
    if operation.again is None:
        assert isinstance(getattr(caught, "cause", caught), requests.Timeout)
        assert report is not None
        assert (report.reason, len(cloud.requests)) == (forbear.events.Reason.UNSAFE, 1)
    else:
        assert len(cloud.requests) == 2
        assert (getattr(caught, "code", 200), operation.again) in ((200, 200), (412, 412))


@pytest.mark.parametrize("way", ["install", "retry="])
def test_the_server_is_obeyed(cloud: Cloud, client: Any, way: str) -> None:
    """Retry-After is, up to the limits of the policy."""
    retry: dict[str, Any] = {} if way == "install" else {"retry": DEFAULT_RETRY}
    if way == "install":
        install(client)
    cloud.store.put("bkt", "there", b"abc")
    cloud.fault(Fault.status(503, retry_after=17, times=1))
    with virtual_time(seed=7) as time:
        CALLS["read"](client, retry)
        assert [15 < delay < 20 for delay in time.slept] == [True]
        cloud.fault(Fault.status(429, retry_after=9999))
        with pytest.raises(exceptions.GoogleAPIError) as caught:
            CALLS["read"](client, retry)
    assert len(cloud.requests) == 3
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.RETRY_AFTER


@pytest.mark.parametrize("way", ["install", "retry="])
@pytest.mark.parametrize(
    "fault", [Fault.status(503), Fault.reset(when="after"), Fault.partial(100)], ids=lambda fault: fault.name
)
def test_what_is_written_once_arrives_whole_or_not_at_all(cloud: Cloud, client: Any, way: str, fault: Fault) -> None:
    """Files that cannot seek the client refuses; what it is handed piece by piece is never stored by halves."""
    retry: dict[str, Any] = {} if way == "install" else {"retry": DEFAULT_RETRY}
    if way == "install":
        install(client)
    content = bytes(range(256)) * 2500
    blob = client.bucket("bkt").blob("new", chunk_size=262_144)
    cloud.fault(fault)
    failed = False
    with virtual_time(seed=7):
        try:
            with blob.open("wb", if_generation_match=0, **retry) as file:
                for start in range(0, len(content), 100_000):
                    file.write(content[start : start + 100_000])
        except (exceptions.GoogleAPIError, requests.RequestException):
            failed = True
    stored = client.bucket("bkt").get_blob("new")
    assert (stored is None) is failed
    assert cloud.effects.count("storage.objects.insert") == (not failed)
    assert stored is None or stored.download_as_bytes() == content
    assert way == "retry=" or not failed
