"""A real pool manager with the exported Retry, against the embedded cloud: what it sends how often."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from urllib3.util import Retry

from forbear import export
from forbear.core.backoff import Exponential
from forbear.policy import Policy, retry
from forbear.services import cloud_storage, rfc9110
from forbear_cloud import Cloud, Fault

QUICK = Exponential(initial=0.001, maximum=0.001)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A cloud in which two requests fail with 503."""
    with Cloud() as cloud:
        cloud.store.create_bucket("b")
        cloud.fault(Fault.status(503, times=2))
        yield cloud


def executed(policy: Policy) -> Retry:
    """The Retry of the source text."""
    namespace: dict[str, Any] = {}
    exec(export.source("urllib3", policy).value, namespace)
    made: Retry = namespace["RETRY"]
    return made


@pytest.mark.parametrize(
    ("policy", "method", "status"),
    [
        (cloud_storage.policy, "GET", 200),
        (cloud_storage.policy, "DELETE", 503),
        (rfc9110.policy, "DELETE", 204),
        (rfc9110.policy, "POST", 503),
        (retry(on=OSError, repeatable=True), "POST", 200),
        (retry(on=OSError), "POST", 503),
        (retry(on=OSError), "DELETE", 204),
        (retry(on=OSError, repeatable=False), "GET", 503),
        (retry(on=OSError, attempts=2), "GET", 503),
    ],
)
@pytest.mark.parametrize("text", [False, True], ids=["object", "text"])
def test_what_it_repeats(policy: Policy, method: str, status: int, text: bool, cloud: Cloud) -> None:
    """It repeats by the method alone, and returns the last response without an exception."""
    policy = policy.with_backoff(QUICK)
    retries = executed(policy) if text else export.urllib3(policy).value
    with urllib3.PoolManager(retries=retries) as pool:
        target = "/storage/v1/b/b" if method != "POST" else "/storage/v1/b?project=p"
        response = pool.request(method, cloud.url + target, json={"name": "c-d"} if method == "POST" else None)
    assert response.status == status


def test_the_numbers() -> None:
    """The documented formula fits in, except for the first retry."""
    made, losses = export.urllib3(cloud_storage.documented)
    assert (made.backoff_factor, made.backoff_jitter, made.backoff_max) == (1, 1, 64)
    assert made.total == 14
    assert made.retry_after_max == 600
    assert [loss for loss in losses if "the first retry comes at once" in loss]
    assert not [loss for loss in losses if loss.startswith("jitter")]
    unlimited = retry(on=OSError, attempts=None, timeout=None, unlimited=True)
    assert export.urllib3(unlimited).value.total == 1_000_000
    assert export.urllib3(unlimited).value.retry_after_max == 900


def test_an_older_one_has_no_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes without, and that is a loss."""
    monkeypatch.delattr(urllib3.Retry, "DEFAULT_RETRY_AFTER_MAX")
    made, losses = export.urllib3(cloud_storage.documented)
    assert made.retry_after_max != 600
    assert "urllib3: before 2.6.3 it obeys any Retry-After, however long" in losses
